//! Engines that start workers on many machines: what they are handed.

use std::path::Path;

use serde_json::{Value, json};

/// The script of an array job of Slurm with so many tasks, each of which works on its part of the shards. A task that was killed is
/// made up for by submitting the script again: what is finished is not run again.
pub fn slurm(lockstorm: &Path, folder: &Path, tasks: u64) -> String {
    let (program, folder) = (quoted(&lockstorm.display().to_string()), folder.display().to_string());
    let last = tasks - 1;
    // An option that has spaces is quoted for sbatch as for a shell; the log of a task is beside the shards.
    let log = quoted(&format!("{}/log-%a.txt", folder.replace('%', "%%")));
    let folder = quoted(&folder);
    format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=lockstorm\n\
         #SBATCH --array=0-{last}\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task=1\n\
         #SBATCH --requeue\n\
         #SBATCH --open-mode=append\n\
         #SBATCH --output={log}\n\
         exec {program} campaign work {folder} --part \"$SLURM_ARRAY_TASK_ID/{tasks}\" --jobs 1\n"
    )
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What pods run, and where the folder of the campaign comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The image, which has `lockstorm` on its path.
    pub image: String,
    /// The claim of a volume that many pods may write, and that has the folder of the campaign as its root.
    pub claim: String,
}

/// The manifest of an Indexed Job of Kubernetes with so many completions, each of which works on its part of the shards. A pod that
/// was killed is started again by the job controller.
pub fn kubernetes(image: &Image, tasks: u64) -> Value {
    let part = format!("$(JOB_COMPLETION_INDEX)/{tasks}");
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": "lockstorm" },
        "spec": {
            "completionMode": "Indexed",
            "completions": tasks,
            "parallelism": tasks,
            "backoffLimit": tasks.saturating_mul(6).min(i32::MAX as u64),
            "template": {
                "spec": {
                    "restartPolicy": "OnFailure",
                    "containers": [{
                        "name": "lockstorm",
                        "image": image.image,
                        "command": ["lockstorm", "campaign", "work", "/campaign", "--part", part, "--jobs", "1"],
                        "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "1" } },
                        "volumeMounts": [{ "name": "campaign", "mountPath": "/campaign" }]
                    }],
                    "volumes": [{
                        "name": "campaign",
                        "persistentVolumeClaim": { "claimName": image.claim }
                    }]
                }
            }
        }
    })
}
