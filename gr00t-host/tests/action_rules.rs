//! Rules of the action side: what is refused, what is counted, and what clipping does.
#![allow(clippy::unwrap_used)]

use gr00t_host::Error;
use gr00t_host::action::{ActionOptions, ActionTransform};
use gr00t_host::embodiment::{
    DataConfig, EmbodimentMetadata, NormalizationMode, RotationType, synthetic_metadata,
};

const MAX_ACTION_DIM: usize = 32;

fn bound(name: &str) -> (DataConfig, EmbodimentMetadata) {
    let config = DataConfig::builtin(name).unwrap();
    let metadata = synthetic_metadata(&config).unwrap();
    let embodiment = metadata.embodiment(&config.embodiment).unwrap().0.clone();
    (config, embodiment)
}

fn transform(name: &str) -> ActionTransform {
    let (config, metadata) = bound(name);
    ActionTransform::new(&config, &metadata, MAX_ACTION_DIM).unwrap()
}

fn refusal(config: &DataConfig, metadata: &EmbodimentMetadata) -> String {
    match ActionTransform::new(config, metadata, MAX_ACTION_DIM) {
        Err(error @ Error::DataConfig { .. }) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

/// Scenario GR#422: the client must see how many steps there are.
#[test]
fn groups_come_in_config_order_with_one_row_per_step() {
    let pred: Vec<f32> = (0..16).flat_map(|step| [step as f32 / 100.0; MAX_ACTION_DIM]).collect();
    let chunk = transform("fourier_gr1_arms_only").apply(&pred, 16).unwrap();
    let shapes: Vec<_> = chunk.groups.iter().map(|g| (g.key.as_str(), g.dim, g.values.len())).collect();
    assert_eq!(
        shapes,
        [("left_arm", 7, 112), ("right_arm", 7, 112), ("left_hand", 6, 96), ("right_hand", 6, 96)]
    );
    let arm = chunk.group("left_arm").unwrap();
    assert!(arm.step(0)[0] < arm.step(15)[0], "each step has its own row");
}

#[test]
fn a_horizon_other_than_16_is_taken() {
    assert_eq!(transform("so100").apply(&[0.0; 50 * MAX_ACTION_DIM], 50).unwrap().horizon, 50);
}

#[test]
fn a_prediction_of_another_size_is_refused() {
    let transform = transform("so100");
    for (values, horizon) in [(0, 0), (31, 1), (64, 1), (32, 2), (0, 1), (32, usize::MAX)] {
        let error = transform.apply(&vec![0.0; values], horizon).unwrap_err();
        assert!(matches!(error, Error::Action(_)), "{values} {horizon}");
    }
}

/// A binary key would turn NaN into 0 and send it.
#[test]
fn a_number_that_is_not_finite_is_refused_in_every_mode() {
    let transform = transform("single_panda_gripper");
    for column in 0..transform.dim() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut pred = vec![0.0; 2 * MAX_ACTION_DIM];
            pred[MAX_ACTION_DIM + column] = bad;
            let error = transform.apply(&pred, 2).unwrap_err().to_string();
            assert!(error.contains("step 1"), "{error}");
        }
    }
    let mut pred = vec![0.0; MAX_ACTION_DIM];
    pred[transform.dim()] = f32::NAN;
    assert!(transform.apply(&pred, 1).is_ok(), "columns beyond the robot's are not sent");
}

#[test]
fn an_action_that_overflows_is_refused() {
    let pred = [f32::MAX; MAX_ACTION_DIM];
    assert!(matches!(transform("fourier_gr1_full_upper_body").apply(&pred, 1), Err(Error::Action(_))));
}

#[test]
fn actions_outside_the_statistics_are_sent_and_counted() {
    let mut pred = vec![0.0; MAX_ACTION_DIM];
    (pred[0], pred[5]) = (1.5, -2.0);
    let chunk = transform("so100").apply(&pred, 1).unwrap();
    assert_eq!(chunk.out_of_range, 2);
    let (_, metadata) = bound("so100");
    let limit = metadata.statistics.action["single_arm"].max[0] as f32;
    assert!(chunk.groups[0].values[0] > limit);
}

#[test]
fn the_edges_of_the_range_are_inside() {
    for edge in [-1.0, 1.0] {
        for name in DataConfig::builtin_names() {
            let (config, _) = bound(name);
            if config.action_keys.iter().all(|k| k.mode == NormalizationMode::MinMax) {
                let chunk = transform(name).apply(&[edge; MAX_ACTION_DIM], 1).unwrap();
                assert_eq!(chunk.out_of_range, 0, "{name}");
            }
        }
    }
}

#[test]
fn clipping_moves_them_to_the_edge_and_still_counts_them() {
    let (config, metadata) = bound("so100");
    let clipping = ActionTransform::new(&config, &metadata, MAX_ACTION_DIM)
        .unwrap()
        .with_options(ActionOptions::default().with_clip(true));
    let mut pred = vec![0.25; MAX_ACTION_DIM];
    (pred[0], pred[5]) = (1.5, -2.0);
    let clipped = clipping.apply(&pred, 1).unwrap();
    let statistics = &metadata.statistics.action;
    assert_eq!(clipped.out_of_range, 2);
    assert_eq!(clipped.groups[0].values[0], statistics["single_arm"].max[0] as f32);
    assert_eq!(clipped.groups[1].values[0], statistics["gripper"].min[0] as f32);
    let plain = transform("so100").apply(&pred, 1).unwrap();
    assert_eq!(clipped.groups[0].values[1..], plain.groups[0].values[1..], "the others are left alone");
}

/// GR#661: a hand that comes back all the same.
#[test]
fn keys_without_a_range_are_flagged_and_give_their_constant() {
    let (config, mut metadata) = bound("fourier_gr1_arms_only");
    let statistics = metadata.statistics.action.get_mut("left_hand").unwrap();
    statistics.min = vec![0.0, 0.5, 0.0, 0.0, 0.0, -1.5];
    statistics.max.clone_from(&statistics.min);
    let transform = ActionTransform::new(&config, &metadata, MAX_ACTION_DIM).unwrap();
    assert_eq!(transform.constant_keys(), ["left_hand"]);
    let chunk = transform.apply(&[0.7; MAX_ACTION_DIM], 1).unwrap();
    assert_eq!(chunk.group("left_hand").unwrap().values, [0.0, 0.5, 0.0, 0.0, 0.0, -1.5]);
    assert_eq!(chunk.out_of_range, 0);
}

#[test]
fn more_than_the_models_dimensions_are_refused() {
    let (config, metadata) = bound("fourier_gr1_full_upper_body");
    let error = ActionTransform::new(&config, &metadata, 31).unwrap_err().to_string();
    assert!(error.contains("action has 32 dimensions, the model takes 31"), "{error}");
}

#[test]
fn modes_without_an_inverse_are_refused() {
    let (mut config, metadata) = bound("so100");
    for mode in [NormalizationMode::Scale, NormalizationMode::SinCos] {
        config.action_keys[0].mode = mode;
        assert!(refusal(&config, &metadata).contains("has no inverse"), "{mode}");
    }
}

#[test]
fn a_rotation_that_changes_the_width_is_refused() {
    let (mut config, metadata) = bound("oxe_droid");
    config.action_keys[1].rotation = Some(RotationType::Rotation6d);
    let message = refusal(&config, &metadata);
    assert!(message.contains("6 values after its rotation, wanted 3"), "{message}");
}

#[test]
fn keys_that_the_metadata_lacks_are_named_at_once() {
    let (mut config, metadata) = bound("so100");
    config.action_keys[0].key = "arm".to_owned();
    config.action_keys[1].key = "griper".to_owned();
    let message = refusal(&config, &metadata);
    assert!(message.contains("action arm:") && message.contains("did you mean gripper?"), "{message}");
}
