//! Tests for the results of a campaign's folder, and for its errors.

use std::{ops::ControlFlow, path::Path};

use super::*;
use crate::study::table::{Rows, Table};
use lockstorm::run::runner::Case;

/// Two variants and an axis, so that some shards begin within a variant.
const TEXT: &str = concat!(
    include_str!("../../../tests/jump.toml"),
    r#"
[sweep]
"fault.jump.clock_step.by" = { values = ["8s", "9s"], name = "jump" }
[expect]
l1 = { violated = "<= 90%" }
"#
);

fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("lockstorm-campaign-{}-{test}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn sources() -> Vec<Source> {
    ["one.toml", "two.toml"].map(|name| parse(name, TEXT).unwrap_or_else(|error| panic!("{error}"))).into()
}

fn planned(test: &str) -> Campaign {
    Campaign::plan(&folder(test), &sources(), 3..8, 6).unwrap_or_else(|error| panic!("{error}"))
}

fn merged(campaign: &Campaign) -> Result<Vec<u8>, CampaignError> {
    let sources = campaign.sources()?;
    let trial = campaign.trial(&sources);
    let mut bytes = Vec::new();
    let mut rows = Rows::csv(Table::of(&trial).columns(), &mut bytes).expect("memory does not fail");
    campaign.merge(&trial, Path::new("memory"), &mut rows)?;
    rows.finish().expect("memory does not fail");
    Ok(bytes)
}

/// Returns the table that one process writes for all runs.
fn of_one_process() -> Vec<u8> {
    let sources = sources();
    let trial = Runner::new(&sources).seeds(3..8);
    let table = Table::of(&trial);
    let mut bytes = Vec::new();
    let mut rows = Rows::csv(table.columns(), &mut bytes).expect("memory does not fail");
    trial.each(&|_| {}, &mut |judged| {
        rows.add(table.row(&judged)).expect("memory does not fail");
        ControlFlow::Continue(())
    });
    rows.finish().expect("memory does not fail");
    bytes
}

#[test]
fn shards_have_every_run_once_and_in_order() {
    let sources = sources();
    let all = Runner::new(&sources).seeds(3..8).cases();
    assert_eq!(all.len(), 20);
    for of_a_shard in [1, 3, 5, 6, 20, 21] {
        let shards = (0..20_u64).step_by(of_a_shard).map(|from| from..from + of_a_shard as u64);
        let cases: Vec<Case> =
            shards.flat_map(|at| Runner::new(&sources).seeds(3..8).positions(at).cases()).collect();
        assert_eq!(cases, all, "{of_a_shard}");
    }
    let beyond = Runner::new(&sources).seeds(3..8).positions(20..u64::MAX);
    assert_eq!(beyond.cases(), []);
}

#[test]
fn what_is_merged_is_what_one_process_writes() {
    let campaign = planned("merged");
    let sources = campaign.sources().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((campaign.runs(), campaign.shards()), (20, 4));
    // Work in any order, on any number of threads, and twice.
    for (shard, jobs, worked) in [
        (3, 1, Worked::Now),
        (0, 4, Worked::Now),
        (0, 1, Worked::Before),
        (2, 2, Worked::Now),
        (1, 3, Worked::Now),
        (3, 2, Worked::Before),
    ] {
        assert_eq!(campaign.work(&sources, shard, jobs, &|_| {}).expect("a shard"), worked, "{shard}");
    }
    let again = Campaign::open(&campaign.folder).expect("the plan that was written");
    assert_eq!(again.plan, campaign.plan);
    assert_eq!(merged(&again).expect("all shards"), of_one_process());
    fs::remove_dir_all(&campaign.folder).expect("a folder of the test");
}

#[test]
fn a_killed_worker_leaves_nothing_that_counts() {
    let campaign = planned("killed");
    let sources = campaign.sources().unwrap_or_else(|error| panic!("{error}"));
    // One worker was killed while it wrote. Another is still at the same shard and will finish
    // later.
    let left = campaign.shards_folder().join("000001.csv.0.part");
    fs::write(&left, "case,file\nhalf a li").expect("written");
    let mut late = Part::create(&campaign.shards_folder(), "000001.csv").expect("a name of its own");
    let status = campaign.status().expect("a folder");
    assert_eq!((&*status.missing(), status.unfinished), ("0 to 3", 2));
    assert_eq!(campaign.work(&sources, 1, 1, &|_| {}).expect("a shard"), Worked::Now);
    let status = campaign.status().expect("a folder");
    assert_eq!((&*status.missing(), status.unfinished), ("0, 2 to 3", 0));
    let table = fs::read(campaign.shard_file(1)).expect("finished");
    late.file.write_all(&table).expect("written");
    late.put(Ok(()), &campaign.shard_file(1)).expect("the shard is finished already");
    assert_eq!(fs::read(campaign.shard_file(1)).expect("finished"), table);
    // A worker with another table has found a run that is not reproducible.
    let mut other = Part::create(&campaign.shards_folder(), "000001.csv").expect("a name of its own");
    other.file.write_all(b"another table").expect("written");
    let error = other.put(Ok(()), &campaign.shard_file(1)).expect_err("they differ");
    assert!(error.to_string().contains("a run is not the same twice"), "{error}");
    // The comparison also takes place if the finished worker has removed the temporary name.
    let mut swept = Part::create(&campaign.shards_folder(), "000001.csv").expect("a name of its own");
    swept.file.write_all(b"another table").expect("written");
    campaign.sweep(1).expect("a folder");
    let error = swept.put(Ok(()), &campaign.shard_file(1)).expect_err("they differ");
    assert!(matches!(error, CampaignError::Differs(_)), "{error}");
    assert_eq!(fs::read(campaign.shard_file(1)).expect("finished"), table);
    fs::remove_dir_all(&campaign.folder).expect("a folder of the test");
}

/// Two workers once both found that the file did not exist, and the second one replaced the file of
/// the first without comparing.
#[test]
fn of_workers_that_publish_one_shard_together_only_one_succeeds() {
    let folder = folder("together");
    fs::create_dir_all(&folder).expect("a folder of the test");
    let tables = ["a table", "another table", "a third table", "a fourth table"];
    for round in 0..200 {
        let (to, barrier) = (folder.join(shard_name(round)), std::sync::Barrier::new(tables.len()));
        let publish_one = |table: &'static str| {
            let from = folder.join(table);
            fs::write(&from, table).expect("written");
            barrier.wait();
            let published = publish(&from, &to);
            fs::remove_file(&from).expect("the temporary name remains");
            published.map(|()| table).map_err(|error| error.kind())
        };
        let published: Vec<Result<&str, io::ErrorKind>> = std::thread::scope(|scope| {
            let publish_one = &publish_one;
            let threads = tables.map(|table| scope.spawn(move || publish_one(table)));
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let winners: Vec<&str> = published.iter().filter_map(|one| one.ok()).collect();
        assert_eq!(winners.len(), 1, "round {round}: {published:?}");
        assert_eq!(fs::read_to_string(&to).expect("published"), winners[0], "round {round}");
        let refused = published.iter().filter(|one| **one == Err(io::ErrorKind::AlreadyExists)).count();
        assert_eq!(refused, tables.len() - 1, "round {round}: {published:?}");
    }
    fs::remove_dir_all(&folder).expect("a folder of the test");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let campaign = planned("refused");
    let sources = campaign.sources().unwrap_or_else(|error| panic!("{error}"));
    let folder = campaign.folder.clone();
    let says = |error: CampaignError, expected: &str| {
        assert!(error.to_string().contains(expected), "{error}\nexpected {expected}");
    };
    says(merged(&campaign).expect_err("nothing was run"), "4 of 4 shards are missing: 0 to 3;");
    says(campaign.work(&sources, 4, 1, &|_| {}).expect_err("no such shard"), "there is no shard 4");
    says(Campaign::plan(&folder, &sources, 3..8, 6).expect_err("it is one"), "expected a folder that is new");
    says(Campaign::plan(&folder, &sources, 3..8, 0).expect_err("nothing"), "a shard of 0 runs");
    says(
        Campaign::plan(&folder, &sources, 0..u64::MAX, 9).expect_err("too many"),
        "more than 1000000 shards",
    );
    says(Campaign::open(&folder.join("absent")).expect_err("nothing there"), "plan.json cannot be read");
    for shard in 0..4 {
        campaign.work(&sources, shard, 2, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    }
    // A truncated table, one with another shard's rows, and one with too many rows.
    let path = campaign.shard_file(2);
    let whole = fs::read_to_string(&path).expect("finished");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for (text, expected) in [
        (whole[..whole.len() - 1].to_owned(), "it ends within a line"),
        (lines[..6].concat(), "expected two.toml#jump=9s@5, found its end"),
        (
            fs::read_to_string(campaign.shard_file(1)).expect("finished"),
            "expected two.toml#jump=8s@5, found one",
        ),
        (whole.clone() + lines[3], "expected its end, found two.toml"),
        (whole.replacen("case,", "token,", 1), "its columns are not those of the campaign"),
        (whole.replacen(",30,", ",3O,", 1), "ended_at is \"3O\""),
        (String::new(), "it ends within a line"),
    ] {
        fs::write(&path, text).expect("written");
        says(merged(&campaign).expect_err(expected), expected);
    }
    fs::write(&path, &whole).expect("written");
    merged(&campaign).unwrap_or_else(|error| panic!("{error}"));
    // A file that has changed since the planning, and another build of lockstorm.
    fs::write(campaign.copy(1), TEXT.replace("9s", "7s")).expect("written");
    says(campaign.sources().expect_err("changed"), "0001.toml has changed since the campaign was planned");
    let plan = fs::read_to_string(folder.join("plan.json")).expect("written");
    for (from, to, expected) in [
        (campaign.plan.build.as_str(), "0123456789abcdef", "(build 0123456789ab) and this is"),
        ("\"lockstorm\": \"", "\"lockstorm\": \"9.", "planned by lockstorm 9."),
    ] {
        fs::write(folder.join("plan.json"), plan.replacen(from, to, 1)).expect("written");
        let campaign = Campaign::open(&folder).unwrap_or_else(|error| panic!("{error}"));
        says(campaign.sources().expect_err("another build"), expected);
    }
    for (from, to, expected) in [
        ("\"runs\": 20", "\"runs\": 20, \"more\": 1", "unknown field `more`"),
        ("\"runs_of_a_shard\": 6", "\"runs_of_a_shard\": 0", "shards of no runs"),
        ("{", "", "is not the plan of a campaign"),
    ] {
        fs::write(folder.join("plan.json"), plan.replacen(from, to, 1)).expect("written");
        says(Campaign::open(&folder).expect_err(expected), expected);
    }
    fs::remove_dir_all(folder).expect("a folder of the test");
}

#[test]
fn an_array_job_is_one_script_whatever_the_folder_is_called() {
    let script = slurm(Path::new("/opt/lockstorm"), "/data/it's 100%", "/data/it's 100%", 8);
    for line in [
        "#SBATCH --array=0-7\n",
        "#SBATCH --output='/data/it'\\''s 100%%/log-%a.txt'\n",
        "exec /opt/lockstorm campaign work '/data/it'\\''s 100%' --part \"$SLURM_ARRAY_TASK_ID/8\" --jobs 1\n",
    ] {
        assert!(script.contains(line), "{script}\nexpected {line}");
    }
}
