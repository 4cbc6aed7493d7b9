//! Reports of the tools in words, for people; programs read the JSON.

use std::fmt::Write;

use serde_json::Value;

/// Parts of a request in the order in which a person reads them; stages come with the server's answer only in its JSON.
const PARTS: [&str; 8] =
    ["wall", "total", "decode", "encode", "queue", "device", "decode_actions", "overhead"];

/// The verdict on one line, then one line per joint group.
pub fn smoke_in_words(report: &Value) -> String {
    let pass = |value: &Value| *value == Value::Bool(true);
    let figures = |of: &Value| {
        let pcc = of["pcc"].as_f64().map_or("none".into(), |pcc| format!("{pcc:.6}"));
        format!("PCC {pcc}, max|d| {:.1e}", number(&of["max_abs"]))
    };
    let total = |run: usize| format!("{:.0} ms", number(&report["timing_ms"][run]["total"]));
    let mut text = format!(
        "{} {} at {}: {}; {}; {}; {}, then {}",
        if pass(&report["pass"]) { "PASS" } else { "FAIL" },
        word(&report["model"]),
        word(&report["url"]),
        figures(&report["actions"]),
        if pass(&report["repeatable"]) { "repeatable" } else { "NOT repeatable" },
        if pass(&report["seed_path_ok"]) { "seeds obeyed" } else { "seeds NOT obeyed" },
        total(0),
        total(1),
    );
    for (key, group) in report["groups"].as_object().into_iter().flatten() {
        let verdict = if pass(&group["pass"]) { "ok" } else { "FAIL" };
        // a String takes all that is written
        let _ = write!(text, "\n  {key:<20} {} {verdict}", figures(group));
    }
    text
}

/// Counts, then a table of latencies.
pub fn bench_in_words(report: &Value) -> String {
    let count = |name: &str| report[name].as_u64().unwrap_or_default();
    let mut text = format!(
        "{} requests to {}, {} at once, in {:.1} s: {:.2} answers/s; {} ok, {} refused as too many (429), {} failed\n\
         {:<16} {:>9} {:>9} {:>9} {:>9}",
        count("requests"),
        word(&report["url"]),
        count("concurrency"),
        number(&report["seconds"]),
        number(&report["throughput_per_s"]),
        count("ok"),
        count("overloaded"),
        count("failed"),
        "ms",
        "median",
        "p90",
        "p99",
        "max",
    );
    for part in PARTS {
        let figures = &report["parts_ms"][part];
        if figures.is_object() {
            let [median, p90, p99, max] = ["median", "p90", "p99", "max"].map(|name| number(&figures[name]));
            let _ = write!(text, "\n{part:<16} {median:>9.2} {p90:>9.2} {p99:>9.2} {max:>9.2}");
        }
    }
    text
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failed_smoke_says_what_failed() {
        let report = json!({
            "pass": false, "model": "mini", "url": "http://h", "actions": { "pcc": 0.5, "max_abs": 1.25 },
            "groups": { "arm": { "pcc": null, "max_abs": 1.25, "pass": false } },
            "repeatable": true, "seed_path_ok": false, "timing_ms": [{ "total": 10.4 }, { "total": 4.0 }],
        });
        let text = smoke_in_words(&report);
        assert!(text.starts_with("FAIL mini at http://h: PCC 0.500000, max|d| 1.2e0; repeatable; seeds NOT obeyed; 10 ms, then 4 ms"), "{text}");
        assert!(text.contains("arm                  PCC none, max|d| 1.2e0 FAIL"), "{text}");
    }

    #[test]
    fn a_bench_is_a_table_of_the_parts_that_were_measured() {
        let figures = json!({ "median": 1.0, "p90": 2.0, "p99": 3.0, "max": 4.0 });
        let report = json!({
            "url": "http://h", "requests": 5, "concurrency": 2, "seconds": 2.0, "throughput_per_s": 2.0,
            "ok": 4, "overloaded": 1, "failed": 0, "parts_ms": { "device": figures, "wall": figures },
        });
        let text = bench_in_words(&report);
        assert!(
            text.starts_with("5 requests to http://h, 2 at once, in 2.0 s: 2.00 answers/s; 4 ok, 1 refused"),
            "{text}"
        );
        let rows: Vec<&str> = text.lines().skip(2).map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(rows, ["wall", "device"]);
    }
}
