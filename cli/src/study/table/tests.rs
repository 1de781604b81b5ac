//! Tests for the content of the table, and for reading its files back.

use super::*;
use lockstorm::file::scenario::{Source, parse};

/// Two axes, one of them with text, a variant with its own sweep, and a drawn value.
fn source() -> Source {
    let text = concat!(
        include_str!("../../../tests/jump.toml"),
        r#"
[sweep]
"fault.jump.clock_step.by" = { values = ["8s", "8s..12s"], name = "jump" }
"network.latency" = ["1ms", "5ms"]
[expect]
l1 = { violated = "<= 90%" }
"#
    );
    parse("table, \"quoted\".toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn write(mut to: Rows<&mut Vec<u8>>, rows: &[Vec<Cell>]) {
    for row in rows {
        to.add(row.clone()).expect("memory does not fail");
    }
    to.finish().expect("memory does not fail");
}

#[test]
fn a_table_has_its_columns_whatever_came_out() {
    let sources = [source()];
    let trial = Runner::new(&sources).seeds(3..5);
    let judged = trial.run(&|_| {});
    let table = Table::of(&trial);
    let names: Vec<&str> = table.columns().iter().map(|column| &*column.name).collect();
    assert_eq!(
        names[..12],
        [
            "case",
            "file",
            "variant",
            "seed",
            "verdict",
            "ended_at",
            "fingerprint",
            "sweep.jump",
            "sweep.latency",
            "drawn.fault.jump.clock_step.by",
            "l1.verdict",
            "l1.overlap",
        ]
    );
    let rows: Vec<Vec<Cell>> = judged.iter().map(|one| table.row(one)).collect();
    assert_eq!(rows.len(), 8);
    let at = |name: &str| names.iter().position(|column| *column == name).expect("a column");
    // The two points with 8s draw nothing. A range is text, and so its axis is text.
    for (row, (jump, latency, seed)) in rows.iter().zip([
        ("8s", 0.001, 3),
        ("8s", 0.001, 4),
        ("8s", 0.005, 3),
        ("8s", 0.005, 4),
        ("8s..12s", 0.001, 3),
        ("8s..12s", 0.001, 4),
        ("8s..12s", 0.005, 3),
        ("8s..12s", 0.005, 4),
    ]) {
        assert_eq!(row.len(), names.len());
        assert_eq!(row[at("seed")], Cell::Whole(seed));
        assert_eq!(row[at("sweep.jump")], Cell::Text(jump.to_owned()));
        assert_eq!(row[at("sweep.latency")], Cell::Number(latency));
        assert_eq!(row[at("ended_at")], Cell::Number(30.0));
        match (
            jump,
            &row[at("drawn.fault.jump.clock_step.by")],
            &row[at("l1.verdict")],
            &row[at("l1.overlap")],
        ) {
            ("8s", Cell::Empty, Cell::Text(held), _) => assert_eq!(held, "holds"),
            (_, Cell::Number(by), Cell::Text(verdict), Cell::Number(overlap)) => {
                assert_eq!(verdict, if *by > 8.0 { "violated" } else { "holds" }, "{by}");
                assert!(*overlap > 0.0, "{overlap}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_written_as_csv_is_read_back() {
    let sources = [source()];
    let trial = Runner::new(&sources).seeds(3..5);
    let judged = trial.run(&|_| {});
    let table = Table::of(&trial);
    let rows: Vec<Vec<Cell>> = judged.iter().map(|one| table.row(one)).collect();
    let mut written = Vec::new();
    let to = Rows::csv(table.columns(), &mut written).expect("memory does not fail");
    write(to, &rows);
    let mut reader = csv::Reader::from_reader(&*written);
    let names: Vec<&str> = table.columns().iter().map(|column| &*column.name).collect();
    assert_eq!(reader.headers().expect("a first line"), names);
    let read: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    assert_eq!(read.len(), judged.len());
    for (read, row) in read.iter().zip(rows) {
        for ((read, cell), column) in read.iter().zip(row).zip(table.columns()) {
            let parsed = Cell::read(column.kind, read).expect("what was written");
            assert_eq!(parsed, cell, "{}", column.name);
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn what_is_written_as_parquet_is_read_back() {
    use ::parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::Field,
    };
    let sources = [source()];
    let seeds = u64::MAX - 2..u64::MAX;
    let trial = Runner::new(&sources).seeds(seeds);
    let judged = trial.run(&|_| {});
    let table = Table::of(&trial);
    // More rows than fit into one group.
    let rows = judged.iter().map(|one| table.row(one)).cycle().take(19);
    let rows: Vec<Vec<Cell>> = rows.collect();
    let mut written = Vec::new();
    let to = Rows::parquet(table.columns(), &mut written).expect("memory does not fail");
    write(to, &rows);
    let reader = SerializedFileReader::new(bytes::Bytes::from(written)).expect("a file of Parquet");
    let read: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    let version = env!("CARGO_PKG_VERSION");
    let created_by = reader.metadata().file_metadata().created_by();
    assert_eq!(
        created_by,
        Some(&*format!("lockstorm version {version}")),
        "its columns are those of a version"
    );
    assert_eq!(read.len(), rows.len());
    for (read, row) in read.into_iter().zip(rows) {
        let read = read.into_columns();
        assert_eq!(read.len(), table.columns().len());
        for (((name, read), cell), column) in read.into_iter().zip(row).zip(table.columns()) {
            let read = match read {
                Field::Str(text) => Cell::Text(text),
                Field::ULong(number) => Cell::Whole(number),
                Field::Double(number) => Cell::Number(number),
                Field::Null => Cell::Empty,
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!((&name, read), (&column.name, cell));
        }
    }
}
