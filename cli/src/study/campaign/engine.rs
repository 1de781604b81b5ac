//! Engines that start workers on many machines: what they are handed.

use std::path::Path;

use serde_json::{Value, json};

/// The script of an array job of Slurm with so many tasks, each of which works on its part of the
/// shards. A task that was killed is made up for by submitting the script again: what is finished
/// is not run again. `place` is the campaign's folder or bucket, and `logs` the folder for what the
/// tasks print.
pub(crate) fn slurm(lockstorm: &Path, place: &str, logs: &str, tasks: u64) -> String {
    let (program, place) = (quoted(&lockstorm.display().to_string()), quoted(place));
    let last = tasks - 1;
    // An option that has spaces is quoted for sbatch as for a shell.
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

/// As one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What pods run, and on which files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// The image, which has `lockstorm` on its path.
    pub(crate) image: String,
    /// Where the campaign is.
    pub(crate) files: Files,
}

/// Where pods find a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Files {
    /// In a volume that many pods may write, and that has the folder of the campaign as its root.
    Volume {
        /// The claim of it.
        claim: String,
    },
    /// In a bucket.
    Bucket {
        /// `s3://BUCKET/PREFIX`.
        place: String,
        /// The secret whose keys are the variables of the environment by which the bucket is
        /// reached; none where the pods' own role suffices.
        secret: Option<String>,
    },
}

/// The manifest of an Indexed Job of Kubernetes with so many completions, each of which works on
/// its part of the shards. A pod that was killed is started again by the job controller.
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
