//! `Reference::predict` as a caller sees it: inputs that do not fit, weights that do not fit, steps, progress,
//! threads. Runs on the mini model with procedural weights.

use std::sync::Arc;
use std::time::Duration;

use gr00t_host::checkpoint::Procedural;
use gr00t_host::checkpoint::procedural::{gaussian_array, uniform_array};
use gr00t_host::{ModelConfig, ModelInputs, Weights};
use ndarray::{Array2, ArrayView2};
use reference::{Error, Observer, Part, Reference};

const SEED: u64 = 3;

fn weights(config: &ModelConfig) -> Weights {
    Weights::new(Arc::new(Procedural::new(config, SEED)))
}

/// Arbitrary inputs of one view.
fn inputs(config: &ModelConfig) -> ModelInputs {
    let head = &config.gr00t.action_head_cfg;
    let vision = &config.eagle.vision_config;
    let mut input_ids = vec![9, 8, 7];
    input_ids.extend(vec![config.eagle.image_token_index; config.eagle.tokens_per_view()]);
    input_ids.extend([6, 5]);
    ModelInputs {
        pixel_values: uniform_array(
            SEED,
            "pixels",
            vision.num_channels * vision.image_size.pow(2),
            -1.0,
            1.0,
        ),
        views: 1,
        input_ids,
        state: uniform_array(SEED, "state", head.max_state_dim, -1.0, 1.0),
        noise: gaussian_array(SEED, "noise", head.action_horizon * head.action_dim),
        embodiment_id: 24,
    }
}

/// Remembers what was reported.
#[derive(Default)]
struct Log {
    stages: Vec<String>,
    progress: Vec<(Part, usize, usize)>,
    finished: Vec<Part>,
}

impl Observer for Log {
    fn stage(&mut self, name: &str, _: ArrayView2<'_, f32>) {
        self.stages.push(name.into());
    }

    fn progress(&mut self, part: Part, done: usize, total: usize) {
        self.progress.push((part, done, total));
    }

    fn finished(&mut self, part: Part, _: Duration) {
        self.finished.push(part);
    }
}

#[test]
fn every_input_that_does_not_fit_is_named_at_once() {
    let config = ModelConfig::mini();
    let wrong = ModelInputs {
        pixel_values: vec![0.0; 5],
        views: 2,
        input_ids: vec![4_000_000_000],
        state: vec![],
        noise: vec![0.0; 7],
        embodiment_id: 32,
    };

    let error = Reference::new(&config, weights(&config)).predict(&wrong, &mut ()).unwrap_err();

    let Error::Inputs(problems) = &error else { panic!("{error}") };
    for what in [
        "pixel_values has 5 elements, wanted 301056",
        "state has 0 elements, wanted 64",
        "noise has 7 elements, wanted 512",
        "input_ids has 0 image tokens, wanted 512 for 2 views",
        "input_ids has 4000000000, the vocabulary ends at 151680",
        "embodiment_id is 32, there are 32 slots",
    ] {
        assert!(problems.iter().any(|problem| problem == what), "{what:?} is not in {problems:?}");
    }
    assert_eq!(problems.len(), 6);
}

#[test]
fn an_observation_without_views_is_refused() {
    let config = ModelConfig::mini();
    let inputs = ModelInputs { pixel_values: vec![], views: 0, input_ids: vec![1], ..inputs(&config) };
    let error = Reference::new(&config, weights(&config)).predict(&inputs, &mut ()).unwrap_err();
    assert_eq!(error.to_string(), "inputs: no views, wanted at least 1");
}

#[test]
fn weights_of_another_model_are_refused_by_tensor_name() {
    let config = ModelConfig::mini();
    let reference = Reference::new(&config, weights(&ModelConfig::n1_5()));
    let error = reference.predict(&inputs(&config), &mut ()).unwrap_err();
    assert!(matches!(error, Error::Weights(_)), "{error}");
    assert!(error.to_string().contains("vision_model.embeddings.patch_embedding"), "{error}");
}

#[test]
fn the_number_of_denoising_steps_can_be_chosen() {
    let config = ModelConfig::mini();
    let reference = Reference::new(&config, weights(&config)).with_denoising_steps(2).unwrap();
    let mut log = Log::default();

    reference.predict(&inputs(&config), &mut log).unwrap();

    let decoded: Vec<_> = log.stages.iter().filter(|name| name.ends_with("decoder_out")).collect();
    assert_eq!(decoded, ["step0.decoder_out", "step1.decoder_out"]);
}

#[test]
fn no_steps_and_more_steps_than_time_buckets_are_refused() {
    let config = ModelConfig::mini();
    for steps in [0, 1001] {
        let refused = Reference::new(&config, weights(&config)).with_denoising_steps(steps);
        assert!(matches!(refused, Err(Error::Steps { got, most: 1000 }) if got == steps));
    }
}

#[test]
fn every_part_reports_progress_up_to_its_end() {
    let config = ModelConfig::mini();
    let mut log = Log::default();

    Reference::new(&config, weights(&config)).predict(&inputs(&config), &mut log).unwrap();

    assert_eq!(log.finished, Part::ALL);
    for part in Part::ALL {
        let progress: Vec<_> = log.progress.iter().filter(|p| p.0 == part).collect();
        let total = progress.len();
        assert!(total > 0, "{part:?}");
        assert!(progress.iter().enumerate().all(|(i, p)| (p.1, p.2) == (i + 1, total)), "{progress:?}");
    }
}

#[test]
fn the_result_is_the_same_on_one_and_on_three_threads() {
    let config = ModelConfig::mini();
    let on = |threads| -> Array2<f32> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Reference::new(&config, weights(&config)).predict(&inputs(&config), &mut ()).unwrap())
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn another_horizon_runs_on_the_same_weights() {
    let config = ModelConfig::mini().with_action_horizon(5).unwrap();
    let action_pred = Reference::new(&config, weights(&config)).predict(&inputs(&config), &mut ()).unwrap();
    assert_eq!(action_pred.dim(), (5, 32));
}
