//! `ledger report`: its rows, in each format, are what an export sums up to.

use super::*;
use crate::ledger::End;

/// What the entries of an export that have ended sum up to, as rows of a report without the counts.
fn summed(export: &str) -> Vec<Value> {
    let mut sums: BTreeMap<[String; 3], [u64; 9]> = BTreeMap::new();
    for entry in export.lines() {
        let entry: Value = serde_json::from_str(entry).unwrap();
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let key = [
            text("admitted_at")[..10].to_owned(),
            text("tenant"),
            text("model"),
        ];
        let sum = sums.entry(key).or_default();
        let units = |name: &str| entry[name].as_u64().unwrap();
        sum[8] += units("charged_units");
        if entry["ended_at"].is_null() {
            continue;
        }
        let is = |yes: bool| u64::from(yes);
        let added = [
            1,
            is(entry["state"] == "COMPLETED"),
            is(entry["state"] == "CANCELLED"),
            is(entry["state"] == "FAILED"),
            is(entry["usage_source"] == "unknown"),
            units("input_units"),
            units("generated_units"),
            units("delivered_units"),
        ];
        sum.iter_mut()
            .zip(added)
            .for_each(|(sum, more)| *sum += more);
    }
    sums.retain(|_, sum| *sum != [0; 9]);
    let row = |([day, tenant, model], sum): ([String; 3], [u64; 9])| {
        json!({
            "day": day, "tenant": tenant, "model": model, "requests": sum[0], "completed": sum[1],
            "cancelled": sum[2], "failed": sum[3], "unknown": sum[4], "input_units": sum[5],
            "generated_units": sum[6], "delivered_units": sum[7], "charged_units": sum[8],
        })
    };
    sums.into_iter().map(row).collect()
}

/// What `known` leaves, and on the next day: one cancelled, one reconciled, one that runs, and one that runs again after
/// an end that cost something.
fn of_every_kind(ground: &Ground) -> Held {
    known(ground);
    let day = |mut record: Record| {
        record.admitted_at = ADMITTED.plus(Duration::from_secs(86_400));
        record
    };
    let mut cancelled = complete(&day(running("cancelled")));
    cancelled.state = State::Cancelled;
    cancelled.ended_by = Some(EndedBy::ClientClosed);
    cancelled.model = "big, \"one\"".into();
    let unknown = Record {
        usage_source: UsageSource::Unknown,
        ..failed(&day(running("billed")), 5)
    };
    let mut again = opening("again");
    again.record = day(again.record);
    let mut runs = opening("runs");
    runs.record = day(runs.record);
    runs.record.generated_units = Units(7);
    let writes = vec![
        settle(cancelled),
        settle(unknown),
        Write::Settle(Arc::new(End {
            shown: false,
            ..ended(failed(&running("again"), 11))
        })),
        Write::Open(Box::new(again), 2),
        Write::Open(Box::new(runs), 3),
    ];
    let store = write(ground, writes);
    let bill = Bill::of("request_id,units\nbilled,123\n");
    assert_eq!(bill.reconcile(ground, "").code, 0);
    store
}

#[test]
fn a_report_sums_what_an_export_holds_in_whatever_format() {
    on_each(|ground| {
        let _store = of_every_kind(ground);
        let summed = summed(&ledger(ground, "export").out);
        assert_eq!(summed.len(), 4, "{summed:?}");
        let json = ledger(ground, "report --format json").json();
        assert_eq!(json, Value::Array(summed.clone()));
        let jsonl = ledger(ground, "report --format jsonl").out;
        let csv = ledger(ground, "report --format csv").out;
        let mut csv = csv.lines();
        let header: Vec<&str> = csv.next().unwrap().split(',').collect();
        assert_eq!(jsonl.lines().count(), summed.len(), "{jsonl}");
        assert_eq!(csv.clone().count(), summed.len());
        for (line, row) in jsonl.lines().zip(&summed) {
            assert_eq!(serde_json::from_str::<Value>(line).unwrap(), *row);
            let at = |name: &&str| line.find(&format!("\"{name}\":")).unwrap();
            let places: Vec<usize> = header.iter().map(at).collect();
            assert!(places.is_sorted(), "members stand as columns do: {line}");
        }
        for (line, row) in csv.zip(&summed) {
            let tail = format!(",{},{}", row["delivered_units"], row["charged_units"]);
            assert!(line.ends_with(&tail), "{line}: {row}");
        }
        let table = ledger(ground, "report").out;
        let charged: u64 = summed
            .iter()
            .map(|r| r["charged_units"].as_u64().unwrap())
            .sum();
        assert!(table.trim_end().ends_with(&charged.to_string()), "{table}");
    });
}

#[test]
fn a_report_sums_by_day_tenant_and_model() {
    on_each(|ground| {
        known(ground);
        let report = ledger(ground, "report");
        let rows: Vec<Vec<&str>> = report
            .lines()
            .iter()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(rows[1][..3], ["2023-11-14", "acme", "fast"]);
        assert_eq!(
            rows[1][3..8],
            ["3", "1", "0", "2", "1"],
            "requests by state, and unknown"
        );
        assert_eq!(
            (rows[1].last(), rows.last().unwrap().last()),
            (Some(&"43"), Some(&"83"))
        );
        assert_eq!(rows.last().unwrap()[0], "total");
        let json = ledger(ground, "report --format json --tenant other").json();
        assert_eq!(json.as_array().unwrap().len(), 1);
        assert_eq!(
            (&json[0]["model"], &json[0]["charged_units"]),
            (&"big, \"one\"".into(), &40.into())
        );
        let csv = ledger(ground, "report --format csv");
        assert!(
            csv.lines()[1].starts_with("2023-11-14,acme,fast,3,"),
            "{}",
            csv.out
        );
    });
}
