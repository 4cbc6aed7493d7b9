//! How a prediction is shown: text for people, JSON for programs.

use gr00t_host::{ActionChunk, OneLine};
use serde_json::{Map, Value, json};

use super::Prediction;
use crate::say::say;

/// What the prediction was made of.
pub(crate) fn print_head(prediction: &Prediction) {
    let inputs = &prediction.encoded.inputs;
    say!("weights      {}", prediction.weights);
    say!("ran on       {}", prediction.ran_on);
    say!("data config  {}, embodiment {}", OneLine(&prediction.data_config), OneLine(&prediction.embodiment));
    say!("statistics   {}", prediction.metadata);
    say!("prompt       {}", OneLine(&prediction.encoded.prompt.language));
    say!(
        "sequence     S = {} tokens, {} view{}, {} denoising steps",
        inputs.input_ids.len(),
        inputs.views,
        if inputs.views == 1 { "" } else { "s" },
        prediction.steps
    );
    for warning in &prediction.encoded.warnings {
        say!("warning      {}", OneLine(warning));
    }
    let outside = prediction.chunk.out_of_range;
    if outside > 0 {
        say!("warning      {outside} action values are outside the statistics' range");
    }
}

/// One table per joint group, one line per time step.
pub(crate) fn print_actions(chunk: &ActionChunk) {
    for group in &chunk.groups {
        say!("\n{} [{}, {}]", OneLine(&group.key), chunk.horizon, group.dim);
        for step in 0..chunk.horizon {
            let values: Vec<String> = group.step(step).iter().map(|v| format!("{v:>10.5}")).collect();
            say!("{step:>4}  {}", values.join(" "));
        }
    }
}

/// One line per part of the run.
pub(crate) fn print_timings(prediction: &Prediction) {
    say!("");
    for (part, time) in &prediction.times {
        say!("{part:<22} {:>10.2} ms", time.as_secs_f64() * 1e3);
    }
}

/// The same as one JSON object.
pub(super) fn as_json(prediction: &Prediction) -> Value {
    let actions: Map<String, Value> = prediction
        .chunk
        .groups
        .iter()
        .map(|group| {
            let steps: Vec<&[f32]> = (0..prediction.chunk.horizon).map(|step| group.step(step)).collect();
            (group.key.clone(), json!(steps))
        })
        .collect();
    let times: Map<String, Value> =
        prediction.times.iter().map(|(part, time)| (part.clone(), json!(time.as_secs_f64() * 1e3))).collect();
    json!({
        "weights": prediction.weights,
        "ran_on": prediction.ran_on,
        "data_config": prediction.data_config,
        "embodiment": prediction.embodiment,
        "metadata": prediction.metadata,
        "prompt": prediction.encoded.prompt.language,
        "prompt_tokens": prediction.encoded.inputs.input_ids.len(),
        "denoising_steps": prediction.steps,
        "warnings": prediction.encoded.warnings,
        "horizon": prediction.chunk.horizon,
        "out_of_range": prediction.chunk.out_of_range,
        "actions": actions,
        "times_ms": times,
    })
}
