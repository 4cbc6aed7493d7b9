//! Geometries beside the golden ones: steps, horizons, embodiments, prompt layouts. Judged by the fp32 reference.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod case;

use case::Case;
use gr00t_host::ModelInputs;
use gr00t_host::checkpoint::procedural::uniform_array;
use gr00t_host::metrics::{Gate, compare};
use gr00t_model::{DtypePolicy, Gr00t, RunOptions};
use reference::Reference;
use tt_ops::Soft;

/// bf16 against fp32.
const GATE: Gate = Gate { min_pcc: 0.9999, max_abs: f64::INFINITY };

fn assert_like_the_reference(
    case: &Case,
    model: &Gr00t<Soft>,
    inputs: &ModelInputs,
    steps: usize,
    what: &str,
) {
    let horizon = inputs.noise.len() / case.config.gr00t.action_dim;
    let config = case.config.clone().with_action_horizon(horizon).unwrap();
    let reference = Reference::new(&config, case.weights.clone()).with_denoising_steps(steps).unwrap();
    let want = reference.predict(inputs, &mut ()).unwrap();
    let options = RunOptions::new().denoising_steps(steps);
    let got = model.predict(inputs, &options).unwrap();
    let comparison = compare(&got.action_pred, want.as_slice().unwrap());
    assert!(comparison.passes(&GATE), "{what}: {comparison:?}");
}

#[test]
fn any_number_of_steps_from_1_to_16() {
    let Some(case) = Case::open("tiny/a") else { return };
    let model = case.builder(DtypePolicy::Bf16).build().unwrap();
    for steps in [1, 2, 3, 7, 16] {
        assert_like_the_reference(&case, &model, &case.inputs, steps, &format!("{steps} steps"));
    }
}

#[test]
fn any_horizon_up_to_the_position_table() {
    let Some(case) = Case::open("tiny/a") else { return };
    let model = case.builder(DtypePolicy::Bf16).build().unwrap();
    let head = &case.config.gr00t.action_head_cfg;
    for horizon in [1, 5, 17, head.max_seq_len] {
        let noise = uniform_array(1, "noise", horizon * head.action_dim, -1.0, 1.0);
        let inputs = ModelInputs { noise, ..case.inputs.clone() };
        assert_like_the_reference(&case, &model, &inputs, 4, &format!("horizon {horizon}"));
    }
}

#[test]
fn several_embodiments_side_by_side() {
    let Some(case) = Case::open("tiny/a") else { return };
    let model = case.builder(DtypePolicy::Bf16).embodiments([0, 1]).build().unwrap();
    assert_eq!(model.embodiments(), [0, 1, case.inputs.embodiment_id]);
    for embodiment_id in [0, 1, case.inputs.embodiment_id] {
        let inputs = ModelInputs { embodiment_id, ..case.inputs.clone() };
        assert_like_the_reference(&case, &model, &inputs, 4, &format!("slot {embodiment_id}"));
    }
}

#[test]
fn image_tokens_anywhere_in_the_prompt() {
    let Some(case) = Case::open("tiny/two_views") else { return };
    let model = case.builder(DtypePolicy::Bf16).build().unwrap();
    let image = case.config.eagle.image_token_index;
    let count = 2 * case.config.eagle.tokens_per_view();
    let text = |n: usize| (5..5 + n as u32).collect::<Vec<u32>>();
    let layouts = [
        ("images first", [vec![image; count], text(7)].concat()),
        ("images last", [text(7), vec![image; count]].concat()),
        ("images alone", vec![image; count]),
        ("images among text", (0..count).flat_map(|i| [image, 3 + i as u32]).collect()),
    ];
    for (what, input_ids) in layouts {
        let inputs = ModelInputs { input_ids, ..case.inputs.clone() };
        assert_like_the_reference(&case, &model, &inputs, 4, what);
    }
}

#[test]
fn weights_are_accounted_for() {
    let Some(case) = Case::open("mini/gr1") else { return };
    let bytes = |policy| {
        let report = case.builder(policy).build().unwrap().structure();
        println!("{policy}\n{report}");
        (report.tensors(), report.elements(), report.bytes())
    };
    let (bf16, mixed_dit, mixed) =
        (bytes(DtypePolicy::Bf16), bytes(DtypePolicy::MixedDit), bytes(DtypePolicy::Mixed));
    assert_eq!((bf16.0, bf16.1), (mixed.0, mixed.1), "a policy changes types only");
    assert!(mixed.2 < mixed_dit.2 && mixed_dit.2 < bf16.2, "{mixed:?} {mixed_dit:?} {bf16:?}");
}
