//! The roofline as tables and as JSON.

use serde::Serialize;

use super::capture::Plan;
use super::card::Card;
use super::steps::Steps;
use super::work::{Totals, work_of};
use crate::say::say;

/// Everything that is printed.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    device: &'static str,
    geometry: String,
    assumptions: Vec<String>,
    stages: Vec<Row>,
    total: Totals,
    peak_teraflops: f64,
    host_ms: [f64; 2],
    measured_ms: [f64; 2],
    steps: Steps,
}

#[derive(Debug, Serialize)]
struct Row {
    stage: &'static str,
    #[serde(flatten)]
    totals: Totals,
}

impl Report {
    pub(super) fn new(plan: &Plan, steps: Steps, card: &Card) -> Self {
        let g = &plan.geometry;
        let stages: Vec<Row> = plan
            .stages
            .iter()
            .map(|(stage, ops)| Row { stage: stage.name(), totals: Totals::of(&work_of(ops), card) })
            .collect();
        let total = stages.iter().fold(Totals::default(), |sum, row| sum.plus(&row.totals));
        Self {
            device: card.name,
            geometry: format!(
                "{} view(s), {} tokens padded to {}, {} denoising steps, policy {}, batch 1",
                g.views,
                g.tokens,
                g.sequence(),
                g.steps,
                g.policy
            ),
            assumptions: card.assumptions(),
            stages,
            total,
            peak_teraflops: card.peak_flops() / 1e12,
            host_ms: [card.stock.host_us / 1e3, card.tuned.host_us / 1e3],
            measured_ms: card.measured_ms,
            steps,
        }
    }

    pub(super) fn print(&self) {
        say!("roofline of {} on paper: {}", self.device, self.geometry);
        say!("");
        say!("assumptions");
        for line in &self.assumptions {
            say!("  - {line}");
        }
        say!("");
        say!("the plan as captured (ms)");
        say!(
            "{:<9}{:>8}{:>8}{:>10}{:>8}{:>8}{:>8}{:>8}{:>8}{:>10}{:>8}{:>8}",
            "stage",
            "matmuls",
            "others",
            "weight MB",
            "act MB",
            "GFLOP",
            "DRAM",
            "matmul",
            "floor",
            "launches",
            "stock",
            "tuned"
        );
        for row in &self.stages {
            line(row.stage, &row.totals);
        }
        line("total", &self.total);
        let [stock, tuned] = self.host_ms;
        say!(
            "with the host's share ({stock:.1} and {tuned:.1} ms): stock {:.1} ms, tuned {:.1} ms",
            self.total.stock_ms + stock,
            self.total.tuned_ms + tuned
        );
        self.print_measured();
        self.print_steps();
    }

    fn print_measured(&self) {
        let (measured, t) = (self.measured_ms[0], &self.total);
        let of = |ms: f64| 100.0 * ms / measured;
        say!("");
        say!("against {measured} ms, measured with the Python port: where the time goes");
        say!("  reading weights at the streaming rate {:>6.1} ms {:>4.0} %", t.dram_ms, of(t.dram_ms));
        say!("  multiplying at HiFi2                  {:>6.1} ms {:>4.0} %", t.compute_ms, of(t.compute_ms));
        say!("  the longer of both, matmul by matmul  {:>6.1} ms {:>4.0} %", t.floor_ms, of(t.floor_ms));
        say!(
            "  {:>4} launches                         {:>6.1} ms {:>4.0} %",
            t.matmuls + t.others,
            t.launch_ms,
            of(t.launch_ms)
        );
        let rest = measured - t.floor_ms - t.launch_ms;
        say!("  neither: below those rates, few cores {:>6.1} ms {:>4.0} %", rest, of(rest));
        say!(
            "  on average {:.0} GB/s of weights and {:.0} of {:.0} TF/s",
            t.weight_bytes as f64 / measured / 1e6,
            t.flops as f64 / measured / 1e9,
            self.peak_teraflops
        );
    }

    fn print_steps(&self) {
        let steps = &self.steps;
        say!("");
        let apart = 100.0 * (steps.start_ms / self.measured_ms[0] - 1.0);
        say!(
            "what each step buys, from the plan with S = {} and stock ops: {:.1} ms ({apart:+.0} % of the measured)",
            steps.sequence,
            steps.start_ms
        );
        say!("  made already                                         without it");
        for step in &steps.made {
            say!("    {:<48} {:>+8.2} ms", step.what, step.alone_ms);
        }
        say!("  next                                                      alone    total so far");
        for step in &steps.next {
            let total = step.total_ms.unwrap_or(f64::NAN);
            say!("    {:<48} {:>+8.2} ms {total:>9.1} ms", step.what, -step.alone_ms);
        }
        say!("  no order of ops goes below the floor, {:.1} ms", self.total.floor_ms);
    }
}

fn line(stage: &str, t: &Totals) {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    say!(
        "{stage:<9}{:>8}{:>8}{:>10.0}{:>8.0}{:>8.0}{:>8.2}{:>8.2}{:>8.2}{:>10.2}{:>8.2}{:>8.2}",
        t.matmuls,
        t.others,
        mb(t.weight_bytes),
        mb(t.activation_bytes),
        t.flops as f64 / 1e9,
        t.dram_ms,
        t.compute_ms,
        t.floor_ms,
        t.launch_ms,
        t.stock_ms,
        t.tuned_ms
    );
}
