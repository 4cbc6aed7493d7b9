//! What a model refuses, and with which words.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::sync::Arc;

use gr00t_host::checkpoint::Procedural;
use gr00t_host::{ModelConfig, ModelInputs, Weights};
use gr00t_model::{
    CancelToken, DtypePolicy, Gr00t, Gr00tBuilder, ModelError, RunOptions, Stage, TraceLayout,
};
use tt_ops::Soft;

fn builder() -> Gr00tBuilder<Soft> {
    let config = ModelConfig::mini();
    let weights = Weights::new(Arc::new(Procedural::new(&config, 3)));
    Gr00t::builder(config, weights, Soft::open().unwrap()).embodiments([24])
}

fn inputs() -> ModelInputs {
    let config = ModelConfig::mini();
    let mut input_ids = vec![config.eagle.image_token_index; config.eagle.tokens_per_view()];
    input_ids.extend([1, 2, 3]);
    ModelInputs {
        pixel_values: vec![0.5; 3 * 224 * 224],
        views: 1,
        input_ids,
        state: vec![0.0; 64],
        noise: vec![1.0; 16 * 32],
        embodiment_id: 24,
    }
}

#[test]
fn every_input_that_does_not_fit_is_named_at_once() {
    let wrong = ModelInputs {
        pixel_values: vec![0.0; 5],
        views: 2,
        input_ids: vec![4_000_000_000],
        state: vec![f32::NAN],
        noise: vec![0.0; 7],
        embodiment_id: 32,
    };
    let error = builder().build().unwrap().predict(&wrong, &RunOptions::new()).unwrap_err();
    let ModelError::Inputs(problems) = &error else { panic!("{error}") };
    assert_eq!(
        problems[..],
        [
            "pixel_values has 5 elements, wanted 301056",
            "input_ids has 0 image tokens, wanted 512 for 2 views",
            "input_ids has 4000000000, the vocabulary ends at 151680",
            "state has 1 elements, wanted 64",
            "noise has 7 elements, wanted 32 for each of 1 to 1024 steps",
            "embodiment_id is 32, there are 32 slots",
            "state has 1 values that are not finite",
        ]
    );
}

#[test]
fn views_that_overflow_are_refused() {
    let wrong = ModelInputs { views: usize::MAX, ..inputs() };
    let error = builder().build().unwrap().predict(&wrong, &RunOptions::new()).unwrap_err();
    assert!(matches!(error, ModelError::Inputs(_)), "{error}");
}

#[test]
fn an_embodiment_that_is_not_loaded_is_refused_until_it_is() {
    let model = builder().build().unwrap();
    let other = ModelInputs { embodiment_id: 17, ..inputs() };
    let error = model.predict(&other, &RunOptions::new()).unwrap_err();
    assert_eq!(error.to_string(), "embodiment slot 17 is not loaded, loaded are [24]");
    model.load_embodiment(17).unwrap();
    assert_eq!(model.predict(&other, &RunOptions::new()).unwrap().horizon, 16);
    let error = model.load_embodiment(32).unwrap_err();
    assert_eq!(error.to_string(), "option embodiment: got 32, wanted less than 32");
}

#[test]
fn options_out_of_range_are_refused() {
    let model = builder().build().unwrap();
    for steps in [0, 17] {
        let error = model.predict(&inputs(), &RunOptions::new().denoising_steps(steps)).unwrap_err();
        assert_eq!(error.to_string(), format!("option denoising_steps: got {steps}, wanted 1 to 16"));
    }
    let error = builder().trace_cap(0).build().unwrap_err();
    assert_eq!(error.to_string(), "option trace_cap: got 0, wanted at least 1");
    assert!(builder().sequence_bucket(0).build().is_err());
    assert!(builder().max_batch(0).build().is_err());
    assert!(builder().denoising_steps(40).build().is_err());
}

#[test]
fn a_cancelled_request_stops_before_its_next_stage_and_leaves_the_model_usable() {
    let model = builder().build().unwrap();
    let wanted = model.predict(&inputs(), &RunOptions::new()).unwrap().action_pred;
    let token = CancelToken::new();
    let options = RunOptions::new().cancel_token(token.clone());

    // cancelled by an observer while the LLM's tensors are shown
    let mut shown = Vec::new();
    let error = model
        .observe(&inputs(), &options, &mut |name: &str, _: [usize; 2], _: &[f32]| {
            shown.push(name.to_owned());
            if name == "llm.norm" {
                token.cancel();
            }
        })
        .unwrap_err();

    assert!(matches!(error, ModelError::Cancelled { before: Stage::Adapter }), "{error}");
    assert_eq!(error.to_string(), "cancelled before adapter");
    assert!(shown.iter().all(|name| !name.starts_with("adapter")), "{shown:?}");
    let error = model.predict(&inputs(), &options).unwrap_err();
    assert!(matches!(error, ModelError::Cancelled { before: Stage::Vision }), "{error}");
    assert_eq!(model.predict(&inputs(), &RunOptions::new()).unwrap().action_pred, wanted);
}

#[test]
fn names_are_parsed_and_wrong_ones_refused() {
    for policy in DtypePolicy::ALL {
        assert_eq!(policy.name().parse::<DtypePolicy>().unwrap(), policy);
    }
    let error = "fp8".parse::<DtypePolicy>().unwrap_err();
    assert_eq!(error.to_string(), "dtype policy: got \"fp8\", wanted bf16, mixed or mixed_dit");
    assert_eq!("two".parse::<TraceLayout>().unwrap(), TraceLayout::Two);
    assert!("one".parse::<TraceLayout>().is_err());
}

#[test]
fn weights_of_another_geometry_are_refused_by_tensor_name() {
    let weights = Weights::new(Arc::new(Procedural::new(&ModelConfig::n1_5(), 3)));
    let error = Gr00t::builder(ModelConfig::mini(), weights, Soft::open().unwrap()).build().unwrap_err();
    assert!(error.to_string().contains("embed_tokens.weight"), "{error}");
}

#[test]
fn models_and_policies_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Gr00t<Soft>>();
    shared::<gr00t_model::Policy<Soft>>();
}

#[test]
fn errors_go_into_a_box_and_to_another_thread() {
    fn boxed<E: std::error::Error + Send + Sync + 'static>() {}
    boxed::<gr00t_model::ModelError>();
    boxed::<gr00t_model::tt_ops::TtError>();
    boxed::<gr00t_host::Error>();
}
