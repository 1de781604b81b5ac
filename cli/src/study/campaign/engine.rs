//! The input of engines that start workers on many machines.

use std::path::Path;

use serde_json::{Value, json};

/// Returns the script of a Slurm array job with this number of tasks, each of which works on its
/// part of the shards. To replace a killed task, submit the script again: finished shards are not
/// run again. `place` is the campaign's folder or bucket, and `logs` the folder for the output of
/// the tasks.
pub(crate) fn slurm(lockstorm: &Path, place: &str, logs: &str, tasks: u64) -> String {
    let (program, place) = (quoted(&lockstorm.display().to_string()), quoted(place));
    let last = tasks - 1;
    // Quote an option with spaces for sbatch as for a shell.
    let log = quoted(&format!("{}/log-%a.txt", logs.replace('%', "%%")));
    format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=lockstorm\n\
         #SBATCH --array=0-{last}\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task=1\n\
         #SBATCH --requeue\n\
         #SBATCH --open-mode=append\n\
         #SBATCH --output={log}\n\
         exec {program} campaign work {place} --part \"$SLURM_ARRAY_TASK_ID/{tasks}\" --jobs 1\n"
    )
}

/// Quotes a text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The image of pods, and their campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// The image. It has `lockstorm` on its path.
    pub(crate) image: String,
    /// The place of the campaign.
    pub(crate) files: Files,
}

/// The place of a campaign for pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Files {
    /// A volume that many pods may write, with the folder of the campaign as its root.
    Volume {
        /// The name of the volume's claim.
        claim: String,
    },
    /// A bucket.
    Bucket {
        /// `s3://BUCKET/PREFIX`.
        place: String,
        /// The secret whose keys are the environment variables for access to the bucket. `None` if
        /// the pods' own role suffices.
        secret: Option<String>,
    },
}

/// Returns the manifest of a Kubernetes Indexed Job with this number of completions, each of which
/// works on its part of the shards. The job controller restarts a killed pod.
pub(crate) fn kubernetes(image: &Image, tasks: u64) -> Value {
    let part = format!("$(JOB_COMPLETION_INDEX)/{tasks}");
    let place = match &image.files {
        Files::Volume { .. } => "/campaign",
        Files::Bucket { place, .. } => place,
    };
    let mut container = json!({
        "name": "lockstorm",
        "image": image.image,
        "command": ["lockstorm", "campaign", "work", place, "--part", part, "--jobs", "1"],
        "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "1" } }
    });
    let mut pod = json!({ "restartPolicy": "OnFailure" });
    match &image.files {
        Files::Volume { claim } => {
            container["volumeMounts"] = json!([{ "name": "campaign", "mountPath": place }]);
            pod["volumes"] = json!([{ "name": "campaign", "persistentVolumeClaim": { "claimName": claim } }]);
        }
        Files::Bucket { secret: Some(secret), .. } => {
            container["envFrom"] = json!([{ "secretRef": { "name": secret } }]);
        }
        Files::Bucket { secret: None, .. } => {}
    }
    pod["containers"] = json!([container]);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": "lockstorm" },
        "spec": {
            "completionMode": "Indexed",
            "completions": tasks,
            "parallelism": tasks,
            "backoffLimit": tasks.saturating_mul(6).min(i32::MAX as u64),
            "template": { "spec": pod }
        }
    })
}
