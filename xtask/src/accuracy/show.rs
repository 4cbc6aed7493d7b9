//! The figures as tables.

use gr00t_host::OneLine;

use super::figures::{PolicyFigures, Report};
use crate::say::say;

/// The stages that leave a part of the model, in their order; of the steps the worst counts.
pub(super) const GATED: [&str; 5] =
    ["vision.mlp1", "backbone.features", "adapter.out", "dit_out", "action_pred"];

const MB: f64 = 1e6;

/// Prints stages, joints, then bytes and times.
pub(super) fn print(report: &Report, all: bool) {
    say!("weights       {}", OneLine(&report.weights));
    say!("steps         {}", report.steps);
    say!("observations  {}", OneLine(report.observations.join(", ")));
    for policy in &report.policies {
        say!("{:<12}  {}", policy.policy, policy.ran_on);
    }
    say!("\nworst of all observations, against the fp32 reference");
    say!("{:<22}{:<12}{:>13}{:>11}{:>11}", "stage", "policy", "1 - PCC", "max abs", "rel rms");
    let names: Vec<&str> = if all {
        report.policies.iter().take(1).flat_map(|p| &p.stages).map(|stage| stage.name.as_str()).collect()
    } else {
        GATED.into()
    };
    for name in names {
        for policy in &report.policies {
            let Some(stage) = policy.worst(name) else { continue };
            let away = stage.pcc.map_or_else(|| "constant".into(), |pcc| format!("{:.2e}", 1.0 - pcc));
            let name = if name == "dit_out" { "dit_out, worst step" } else { name };
            say!("{name:<22}{:<12}{away:>13}{:>11.2e}{:>11.2e}", policy.policy, stage.max_abs, stage.rel_rms);
        }
    }
    print_groups(report);
    print_costs(&report.policies);
}

fn print_groups(report: &Report) {
    say!("\nactions in their physical units, over all observations and time steps");
    say!("{:<22}{:<12}{:>11}{:>11}{:>11}{:>16}", "key", "policy", "max abs", "rms", "range", "max of range");
    let Some(first) = report.policies.first() else { return };
    for group in &first.groups {
        for policy in &report.policies {
            let Some(found) = policy.groups.iter().find(|g| g.key == group.key) else { continue };
            let range = found.range.map_or_else(|| "-".into(), |range| format!("{range:.3}"));
            let share = found.range.filter(|range| *range > 0.0);
            let share = share.map_or_else(|| "-".into(), |r| format!("{:.4} %", 100.0 * found.max_abs / r));
            say!(
                "{:<22}{:<12}{:>11.2e}{:>11.2e}{range:>11}{share:>16}",
                OneLine(format!("{} [{}]", group.key, group.dim)).to_string(),
                policy.policy,
                found.max_abs,
                found.rms
            );
        }
    }
}

fn print_costs(policies: &[PolicyFigures]) {
    say!(
        "\nwhat it saves: MB of weights on the device, and the time of a prediction without the host's share"
    );
    let parts: Vec<&str> =
        policies.first().map(|p| p.parts.iter().map(|p| p.part).collect()).unwrap_or_default();
    let heads: Vec<String> = parts.iter().map(|part| format!("{part:>19}")).collect();
    say!(
        "{:<12}{}{:>10}{:>9}{:>12}{:>9}{:>13}",
        "policy",
        heads.concat(),
        "all",
        "",
        "median ms",
        "",
        "fastest ms"
    );
    let first = policies.first();
    for policy in policies {
        let cells: Vec<String> = policy
            .parts
            .iter()
            .map(|part| format!("{:>10.1} {:<8}", part.bytes as f64 / MB, part.dtype))
            .collect();
        let ms = policy.median_ms();
        let ms_change = first.map_or_else(String::new, |first| time_change(policy, first));
        let bytes_change = change(Some(policy.bytes() as f64), first.map(|f| f.bytes() as f64));
        let fastest = policy.predict_ms.iter().copied().reduce(f64::min);
        let [ms, fastest] = [ms, fastest].map(|ms| ms.map_or_else(|| "-".into(), |ms| format!("{ms:.2}")));
        say!(
            "{:<12}{}{:>10.1}{bytes_change:>9}{ms:>12}{ms_change:>9}{fastest:>13}",
            policy.policy,
            cells.concat(),
            policy.bytes() as f64 / MB
        );
    }
    say!("{NOISE}: no difference, the middle halves of the times overlap. Other programs' work counts too.");
}

/// In place of a difference of times that is less than the spread of the repeats.
pub(super) const NOISE: &str = "noise";

/// The change of the median time against the `first` policy's, if it is more than the repeats differ among themselves.
pub(super) fn time_change(policy: &PolicyFigures, first: &PolicyFigures) -> String {
    let changed = change(policy.median_ms(), first.median_ms());
    match (policy.middle_half_ms(), first.middle_half_ms()) {
        (Some([from, to]), Some([first_from, first_to]))
            if !changed.is_empty() && from <= first_to && first_from <= to =>
        {
            NOISE.into()
        }
        _ => changed,
    }
}

/// `value` against the first policy's, in percent; nothing for the first itself.
fn change(value: Option<f64>, first: Option<f64>) -> String {
    match (value, first) {
        (Some(value), Some(first)) if value != first && first > 0.0 => {
            format!("{:+.1} %", 100.0 * (value / first - 1.0))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use gr00t_model::DtypePolicy;

    use super::*;

    #[test]
    fn a_change_of_time_within_the_spread_of_the_repeats_is_noise() {
        let timed = |times: [f64; 5]| {
            let mut figures = PolicyFigures::new(DtypePolicy::Bf16, "a device".into());
            figures.predict_ms = times.into();
            figures
        };
        let first = timed([10.0, 12.0, 30.0, 11.0, 20.0]);
        assert_eq!(time_change(&timed([18.0, 9.0, 15.0, 40.0, 14.0]), &first), NOISE);
        assert_eq!(time_change(&timed([6.0, 7.0, 5.0, 6.0, 90.0]), &first), "-50.0 %");
        assert_eq!(time_change(&first, &first), "");
    }

    #[test]
    fn changes_are_of_the_first_policy() {
        assert_eq!(change(Some(75.0), Some(100.0)), "-25.0 %");
        assert_eq!(change(Some(100.0), Some(100.0)), "");
        assert_eq!(change(None, Some(100.0)), "");
    }
}
