//! What the op suite gave as a page of documentation: per op, how far the card and the software device are from exact results.

use std::fmt::Write as _;

use tt_ops::Soft;
use tt_ops::suite::{self, Difference, Mode};

/// One case of the card.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) op: String,
    pub(crate) case: String,
    /// The result's data type, where there are values.
    pub(crate) dtype: Option<String>,
    pub(crate) difference: Option<Difference>,
    pub(crate) max_ulp: Option<f64>,
    pub(crate) failure: Option<String>,
    /// Why it is on the list of ignored cases, if it is.
    pub(crate) ignored: Option<&'static str>,
}

/// The worst of several cases.
#[derive(Debug)]
struct Worst {
    pcc: f64,
    relative_rms: f64,
    max_ulp: f64,
}

impl Worst {
    /// Nothing where no case has a result.
    fn of(cases: impl Iterator<Item = (Option<Difference>, Option<f64>)>) -> Option<Self> {
        cases.filter_map(|(difference, ulp)| difference.zip(ulp)).fold(
            None,
            |worst: Option<Self>, (d, ulp)| {
                let so_far = worst.unwrap_or(Self { pcc: 1.0, relative_rms: 0.0, max_ulp: 0.0 });
                Some(Self {
                    pcc: so_far.pcc.min(d.pcc),
                    relative_rms: so_far.relative_rms.max(d.relative_rms),
                    max_ulp: so_far.max_ulp.max(ulp),
                })
            },
        )
    }

    /// Three cells of a table.
    fn cells(worst: Option<&Self>) -> String {
        worst.map_or_else(
            || "– | – | –".into(),
            |w| format!("{:.6} | {} | {}", w.pcc, rounded(w.relative_rms), ulps(w.max_ulp)),
        )
    }
}

fn rounded(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.1e}") }
}

fn ulps(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v < 100.0 => format!("{v:.2}"),
        v if v < 10_000.0 => format!("{v:.0}"),
        v => format!("{v:.1e}"),
    }
}

/// Cases of which there is one line: those of an op whose results have the same data type.
type Kind<'a> = (&'a str, Option<&'a str>);

impl Row {
    fn kind(&self) -> Kind<'_> {
        (&self.op, self.dtype.as_deref())
    }
}

/// The page. `device` is what the device says of itself.
pub(crate) fn page(device: &str, rows: &[Row]) -> String {
    let soft = Soft::builder().open().unwrap();
    let soft = suite::run(&soft, Mode::Traced);
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for row in rows {
        if !kinds.contains(&row.kind()) {
            kinds.push(row.kind());
        }
    }
    let place = if std::env::var_os("TT_METAL_SIMULATOR").is_some() { ", in the simulator" } else { "" };
    let (cases, ignored) = (rows.len(), rows.iter().filter(|row| row.ignored.is_some()).count());
    let mut page = format!(
        "# Ops on the card and on the software device\n\n\
         Written by the op suite itself (`TT_OPS_SUITE_TABLE=FILE cargo xtask test --device metal`); not to be edited. Every case was \
         captured\nand replayed on\n{device}{place},\nand on the software device, and compared with results computed in f64. What is \
         behind the differences: `docs/metal.md`.\n\n\
         {cases} cases, of which {ignored} are ignored on the card (below) and left out of the card's figures here. Of the cases of an \
         op and of a\nresult's data type the least PCC, the largest relative rms and the largest difference in units of the result's \
         last place; elements\nsmaller than the result's rms count as that large.\n\n\
         | op | result | cases | ignored | card: PCC | rms | ulp | software: PCC | rms | ulp |\n\
         |---|---|---|---|---|---|---|---|---|---|\n"
    );
    for (op, dtype) in kinds {
        let of_kind = || rows.iter().filter(|row| row.kind() == (op, dtype));
        let card = Worst::of(of_kind().filter(|r| r.ignored.is_none()).map(|r| (r.difference, r.max_ulp)));
        let same = |r: &&suite::CaseResult| r.op == op && r.dtype.map(|d| d.to_string()).as_deref() == dtype;
        let soft = Worst::of(soft.iter().filter(same).map(|r| (r.difference, r.max_ulp)));
        let ignored = of_kind().filter(|row| row.ignored.is_some()).count();
        let ignored = if ignored == 0 { String::new() } else { ignored.to_string() };
        let (card, soft) = (Worst::cells(card.as_ref()), Worst::cells(soft.as_ref()));
        let (dtype, cases) = (dtype.unwrap_or("–"), of_kind().count());
        let _ = writeln!(page, "| {op} | {dtype} | {cases} | {ignored} | {card} | {soft} |");
    }
    page.push_str(
        "\nIgnored on the card:\n\n| op | case | PCC | rms | ulp | why |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        if let Some(reason) = row.ignored {
            let cells = Worst::cells(Worst::of([(row.difference, row.max_ulp)].into_iter()).as_ref());
            let _ = writeln!(page, "| {} | {} | {cells} | {reason} |", row.op, row.case);
        }
    }
    page
}
