//! `bench --device metal`: what can be measured of a card, which is loading and predictions. Limits and ops are the software
//! device's, so are threads; a server is asked by `gr00t-serve bench`.

use anyhow::{Result, bail};
use gr00t_host::ModelConfig;
use tt_ops::Device;

use super::report::Report;
use super::results::Results;
use super::{BenchArgs, machine, model};
use crate::device::DeviceArgs;
use crate::output;

/// Measures and prints, and writes the file asked for.
///
/// # Errors
/// Options of the software device; a card that cannot be opened; nothing to measure.
pub(super) fn measured(args: &BenchArgs, config: &ModelConfig) -> Result<Results> {
    let DeviceArgs { isa, threads, checked, .. } = &args.device;
    if isa.is_some() || threads.is_some() || *checked {
        bail!("--isa, --threads and --checked are the software device's, got --device metal");
    }
    let machine = |card: String| machine::of_card(card);
    if !model::is_wanted_of_a_card(&Report::new(
        machine(String::new()),
        args.only.clone(),
        args.without.clone(),
    )) {
        bail!(
            "nothing of {} is measured of a card, wanted load/, device/, stage/, predict/, host/ or memory/",
            args.only.as_deref().unwrap_or("what is left")
        );
    }
    let card = DeviceArgs::open_metal()?;
    let mut report = Report::new(machine(card.describe()), args.only.clone(), args.without.clone());
    report.print_head();
    model::run_on_card(args, config, &card, &mut report)?;
    if let Some(path) = &args.json {
        output::write(path, &report.to_json()?)?;
    }
    Ok(report.results().clone())
}
