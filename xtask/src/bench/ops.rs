//! The kernel cases of `benches`, held against the machine's limits.

use anyhow::Result;
use gr00t_host::ModelConfig;
use tt_soft::Engine;

use super::limits::Limits;
use super::measure::Times;
use super::report::Report;
use crate::device::DeviceArgs;

const RUNS: usize = 31;

/// Times every op that is asked for.
pub(super) fn run(
    config: &ModelConfig,
    device: &DeviceArgs,
    limits: &Limits,
    report: &mut Report,
) -> Result<()> {
    if !report.wants_some("op/") {
        return Ok(());
    }
    let opened = device.open()?;
    let engine = Engine::new(opened.isa(), opened.threads())?;
    for case in benches::cases(config, device.policy) {
        let name = format!("op/{}", case.name);
        if report.wants(&name) {
            let mut prepared = case.prepare(&engine)?;
            let work = limits.work(case.kind.flops(), prepared.bytes() as f64);
            let times = Times::of(RUNS, || prepared.run(&engine))?;
            report.times(name, &times, Some(work));
        }
    }
    Ok(())
}
