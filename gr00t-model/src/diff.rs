//! Two models compared op by op: instruction set levels, thread counts, dtype policies, devices.

use gr00t_host::ModelInputs;
use tt_ops::diff::{Report, compare};
use tt_ops::{CaptureOptions, CapturedOp, Device};

use crate::error::Result;
use crate::model::{Gr00t, RunOptions};
use crate::pipeline::Pipeline;
use crate::stages::Stage;

/// Runs the same inputs through two models that keep the result of every op, and says how far apart they are, stage by stage in
/// the order in which they run. Each op has its own model's operands, so differences add up along a stage: the first that
/// diverges is where to look.
///
/// `limit` is the relative root mean square that an op may be apart by; [`tt_ops::diff::usual_limit`] suits two devices with equal
/// weights.
///
/// ```
/// # use std::sync::Arc;
/// # use gr00t_host::checkpoint::Procedural;
/// # use gr00t_host::{ModelConfig, ModelInputs, Weights};
/// # use gr00t_model::{Gr00t, RunOptions};
/// use tt_ops::Soft;
/// use tt_ops::diff::usual_limit;
///
/// # let config = ModelConfig::mini();
/// # let weights = Weights::new(Arc::new(Procedural::new(&config, 3)));
/// # let load = |device| Gr00t::builder(config.clone(), weights.clone(), device).embodiments([24]).build();
/// # let inputs = ModelInputs {
/// #     pixel_values: vec![0.5; 3 * 224 * 224],
/// #     views: 1,
/// #     input_ids: vec![config.eagle.image_token_index; 256],
/// #     state: vec![0.0; 64],
/// #     noise: vec![1.0; 16 * 32],
/// #     embodiment_id: 24,
/// # };
/// let (one, two) = (load(Soft::builder().threads(1).open()?)?, load(Soft::builder().threads(2).open()?)?);
/// for (stage, report) in gr00t_model::diff(&one, &two, &inputs, &RunOptions::new(), usual_limit)? {
///     assert!(report.first().is_none(), "{stage}: {report}");
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`Gr00t::predict`], and models of another geometry or trace layout.
pub fn diff<A: Device, B: Device>(
    wanted: &Gr00t<A>,
    got: &Gr00t<B>,
    inputs: &ModelInputs,
    options: &RunOptions,
    limit: impl Fn(&CapturedOp) -> f64,
) -> Result<Vec<(Stage, Report)>> {
    let keep = CaptureOptions::default().keep_all();
    let (wanted, got): (Pipeline<A>, Pipeline<B>) =
        (wanted.prepared(inputs, options, keep)?, got.prepared(inputs, options, keep)?);
    wanted
        .traces()
        .zip(got.traces())
        .map(|((stage, wanted), (_, got))| Ok((stage, compare(wanted, got, &limit)?)))
        .collect()
}
