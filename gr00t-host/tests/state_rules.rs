//! Rules of the state side: what is refused when a data config is bound to metadata, what is refused in an observation, and
//! what is only warned of.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use gr00t_host::Error;
use gr00t_host::embodiment::{
    DataConfig, EmbodimentMetadata, KeyModality, KeySpec, KeyStatistics, NormalizationMode, RotationType,
    synthetic_metadata,
};
use gr00t_host::observation::Values;
use gr00t_host::state::{StateTransform, UnknownKeys};

const MAX_STATE_DIM: usize = 64;

fn bound(name: &str) -> (DataConfig, EmbodimentMetadata) {
    let config = DataConfig::builtin(name).unwrap();
    let metadata = synthetic_metadata(&config).unwrap();
    let embodiment = metadata.embodiment(&config.embodiment).unwrap().0.clone();
    (config, embodiment)
}

fn transform(name: &str) -> StateTransform {
    let (config, metadata) = bound(name);
    StateTransform::new(&config, &metadata, MAX_STATE_DIM).unwrap()
}

fn refusal(config: &DataConfig, metadata: &EmbodimentMetadata) -> String {
    match StateTransform::new(config, metadata, MAX_STATE_DIM) {
        Err(error @ Error::DataConfig { .. }) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

fn state(pairs: &[(&str, &[f64])]) -> BTreeMap<String, Values> {
    pairs.iter().map(|(key, values)| ((*key).to_owned(), Values::F64(values.to_vec()))).collect()
}

fn problems(transform: &StateTransform, state: &BTreeMap<String, Values>) -> Vec<String> {
    match transform.apply(state) {
        Err(Error::Observation(problems)) => problems,
        other => panic!("not refused: {other:?}"),
    }
}

fn droid(rotation: [f64; 3]) -> BTreeMap<String, Values> {
    state(&[("eef_position", &[0.1, 0.2, 0.3]), ("eef_rotation", &rotation), ("gripper_position", &[0.5])])
}

// ---- binding ----

#[test]
fn all_keys_that_the_metadata_lacks_are_named_at_once() {
    let (mut config, metadata) = bound("so100");
    config.state_keys[0].key = "single_amr".to_owned();
    config.state_keys[1].key = "fingers".to_owned();
    let message = refusal(&config, &metadata);
    assert!(
        message.contains("state single_amr") && message.contains("did you mean single_arm?"),
        "{message}"
    );
    assert!(message.contains("state fingers"), "{message}");
}

#[test]
fn missing_statistics_are_refused_where_a_mode_needs_them() {
    let (mut config, mut metadata) = bound("so100");
    metadata.statistics.state.remove("gripper");
    let message = refusal(&config, &metadata);
    assert!(message.contains("state gripper: no statistics"), "{message}");
    config.state_keys[1].mode = NormalizationMode::SinCos;
    assert!(StateTransform::new(&config, &metadata, MAX_STATE_DIM).is_ok());
}

#[test]
fn statistics_of_another_length_are_refused() {
    let (config, mut metadata) = bound("so100");
    metadata.statistics.state.get_mut("single_arm").unwrap().std.push(1.0);
    let message = refusal(&config, &metadata);
    assert!(message.contains("statistics std has 6 values, its shape says 5"), "{message}");
}

/// LR#239, OP#814: statistics that aren't numbers.
#[test]
fn statistics_that_are_not_finite_are_refused_for_the_modes_that_use_them() {
    let spoil: [fn(&mut KeyStatistics); 3] =
        [|s| s.max[0] = f64::NAN, |s| s.q01[0] = f64::INFINITY, |s| s.std[0] = f64::NAN];
    let modes = [NormalizationMode::MinMax, NormalizationMode::Q99, NormalizationMode::MeanStd];
    for (spoil, uses_it) in spoil.iter().zip(modes) {
        let (mut config, mut metadata) = bound("so100");
        spoil(metadata.statistics.state.get_mut("gripper").unwrap());
        for mode in modes {
            config.state_keys[1].mode = mode;
            let refused = StateTransform::new(&config, &metadata, MAX_STATE_DIM).is_err();
            assert_eq!(refused, mode == uses_it, "{mode}");
        }
    }
}

#[test]
fn more_than_the_models_dimensions_are_refused_not_cut_off() {
    let (config, metadata) = bound("fourier_gr1_arms_waist");
    let error = StateTransform::new(&config, &metadata, 57).unwrap_err().to_string();
    assert!(error.contains("state has 58 dimensions, the model takes 57"), "{error}");
}

#[test]
fn a_shape_of_absurd_size_is_refused() {
    let (mut config, mut metadata) = bound("so100");
    for (key, shape) in [("gripper", vec![usize::MAX]), ("single_arm", vec![5, 1])] {
        metadata.modalities.state.get_mut(key).unwrap().shape = shape;
    }
    config.state_keys[1].mode = NormalizationMode::SinCos;
    metadata.statistics.state.clear();
    let message = refusal(&config, &metadata);
    assert!(message.contains("of 1 to 1024") && message.contains("[5, 1]"), "{message}");
}

#[test]
fn modes_that_a_rotation_cannot_have_are_refused() {
    let (config, metadata) = bound("single_panda_gripper");
    let quaternion = |mode, absolute| {
        let (mut config, mut metadata) = (config.clone(), metadata.clone());
        config.state_keys[4].mode = mode;
        metadata.modalities.state.get_mut("base_rotation").unwrap().absolute = absolute;
        StateTransform::new(&config, &metadata, MAX_STATE_DIM).map(|_| ()).map_err(|e| e.to_string())
    };
    assert!(quaternion(NormalizationMode::MinMax, true).is_ok());
    assert!(quaternion(NormalizationMode::None, false).is_ok());
    assert!(quaternion(NormalizationMode::MinMax, false).unwrap_err().contains("relative rotation"));
    assert!(quaternion(NormalizationMode::Q99, true).unwrap_err().contains("wanted min_max or none"));
    assert!(quaternion(NormalizationMode::SinCos, true).unwrap_err().contains("wanted min_max or none"));
}

#[test]
fn a_rotation_needs_a_known_source_of_the_right_size() {
    let (config, metadata) = bound("oxe_droid");
    let with = |change: fn(&mut KeyModality)| {
        let mut metadata = metadata.clone();
        change(metadata.modalities.state.get_mut("eef_rotation").unwrap());
        refusal(&config, &metadata)
    };
    assert!(with(|m| m.rotation_type = None).contains("no rotation_type"));
    assert!(
        with(|m| m.rotation_type = Some(RotationType::Quaternion))
            .contains("quaternion with 3 values, wanted 4")
    );
}

#[test]
fn a_rotation_of_a_width_that_upstream_cannot_concatenate_is_refused() {
    let (mut config, metadata) = bound("bimanual_panda_gripper");
    config.state_keys[1].rotation = Some(RotationType::AxisAngle);
    let message = refusal(&config, &metadata);
    assert!(message.contains("3 values after its rotation, wanted 4 or 6"), "{message}");
}

#[test]
fn a_key_that_is_not_continuous_can_only_be_binary() {
    let (mut config, mut metadata) = bound("so100");
    metadata.modalities.state.get_mut("gripper").unwrap().continuous = false;
    assert!(refusal(&config, &metadata).contains("isn't continuous"));
    config.state_keys[1].mode = NormalizationMode::Binary;
    assert!(StateTransform::new(&config, &metadata, MAX_STATE_DIM).is_ok());
}

#[test]
fn an_absolute_rotation_is_normalised_by_fixed_bounds_not_by_its_statistics() {
    let (mut config, metadata) = bound("oxe_droid");
    let raw = StateTransform::new(&config, &metadata, MAX_STATE_DIM)
        .unwrap()
        .apply(&droid([0.3, 0.2, 0.1]))
        .unwrap();
    config.state_keys[1].mode = NormalizationMode::MinMax;
    let scaled = StateTransform::new(&config, &metadata, MAX_STATE_DIM)
        .unwrap()
        .apply(&droid([0.3, 0.2, 0.1]))
        .unwrap();
    // rotation_6d is bounded by ±1, so that min_max changes nothing but rounding.
    for (a, b) in raw.values.iter().zip(&scaled.values) {
        assert!((a - b).abs() < 1e-7);
    }
}

// ---- observations ----

/// GR#82, GR#429: one key left out, another misspelt, and no error upstream.
#[test]
fn missing_misspelt_short_and_infinite_keys_are_all_named_at_once() {
    let transform = transform("fourier_gr1_arms_only");
    let observation = state(&[
        ("left_arm", &[0.0; 6]),
        ("rigth_arm", &[0.0; 7]),
        ("left_hand", &[0.0, 0.0, f64::NAN, 0.0, 0.0, 0.0]),
        ("right_hand", &[0.0, f64::NEG_INFINITY, 0.0, 0.0, 0.0, 0.0]),
    ]);
    let problems = problems(&transform, &observation);
    let wanted = [
        "state left_arm has 6 values, wanted 7",
        "state right_arm is missing, wanted 7 values (is it rigth_arm)",
        "state left_hand[2] is NaN, wanted a finite number",
        "state right_hand[1] is -inf, wanted a finite number",
        "state rigth_arm is unknown (did you mean right_arm?)",
    ];
    assert_eq!(problems, wanted);
}

#[test]
fn an_observation_without_state_names_every_key() {
    assert_eq!(problems(&transform("oxe_droid"), &BTreeMap::new()).len(), 3);
}

#[test]
fn an_unknown_key_is_an_error_or_a_warning_as_asked() {
    let transform = transform("oxe_droid");
    let mut observation = droid([0.0; 3]);
    observation.insert("torque".to_owned(), Values::F32(vec![1.0]));
    assert_eq!(problems(&transform, &observation), ["state torque is unknown"]);
    let vector = transform.apply_with(&observation, UnknownKeys::Warn).unwrap();
    assert_eq!(vector.warnings, ["state torque is unknown, ignored"]);
}

#[test]
fn a_key_that_only_the_metadata_knows_is_ignored_with_a_warning() {
    let transform = transform("fourier_gr1_arms_only");
    let arm: &[f64] = &[0.0; 7];
    let hand: &[f64] = &[0.0; 6];
    let observation = state(&[
        ("left_arm", arm),
        ("right_arm", arm),
        ("left_hand", hand),
        ("right_hand", hand),
        ("waist", &[f64::NAN; 9]),
    ]);
    let vector = transform.apply(&observation).unwrap();
    assert_eq!(vector.warnings, ["state waist is not used by the data config, ignored"]);
    assert_eq!(vector.dim(), 52);
}

/// GR#82: degrees sent where the statistics are in radians.
#[test]
fn degrees_are_noticed() {
    let transform = transform("so100");
    let observation = state(&[("single_arm", &[57.3, -28.6, 45.0, 10.0, 0.0]), ("gripper", &[0.2])]);
    let warnings = transform.apply(&observation).unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("state single_arm: 4 of 5 values") && warnings[0].contains("degrees"),
        "{warnings:?}"
    );
}

#[test]
fn a_state_far_outside_its_statistics_is_used_and_warned_of() {
    let transform = transform("so100");
    let far = state(&[("single_arm", &[0.0, 0.0, 900.0, 0.0, 0.0]), ("gripper", &[0.2])]);
    let vector = transform.apply(&far).unwrap();
    assert!(vector.values[2] > 100.0, "not clamped");
    assert!(vector.warnings[0].contains("[2] = 900") && !vector.warnings[0].contains("degrees"));
    let near = state(&[("single_arm", &[0.0, 0.0, 2.0, 0.0, 0.0]), ("gripper", &[0.2])]);
    assert!(transform.apply(&near).unwrap().warnings.is_empty());
}

#[test]
fn a_joint_that_hardly_moved_in_training_is_not_warned_of_for_noise() {
    let (config, mut metadata) = bound("so100");
    let statistics = metadata.statistics.state.get_mut("single_arm").unwrap();
    (statistics.min[1], statistics.max[1]) = (0.0, 1e-6);
    (statistics.min[2], statistics.max[2]) = (0.1, 0.1);
    let transform = StateTransform::new(&config, &metadata, MAX_STATE_DIM).unwrap();
    let vector =
        transform.apply(&state(&[("single_arm", &[0.0, 0.01, 0.2, 0.0, 0.0]), ("gripper", &[0.2])])).unwrap();
    assert!(vector.warnings.is_empty(), "{:?}", vector.warnings);
    assert_eq!(vector.values[2], 0.0, "a constant dimension is 0 to the model");
}

#[test]
fn a_quaternion_of_zeros_is_refused() {
    let transform = transform("bimanual_panda_gripper");
    let pos: &[f64] = &[0.1; 3];
    let unit: &[f64] = &[1.0, 0.0, 0.0, 0.0];
    let observation = state(&[
        ("right_arm_eef_pos", pos),
        ("right_arm_eef_quat", &[0.0; 4]),
        ("right_gripper_qpos", &[0.0; 2]),
        ("left_arm_eef_pos", pos),
        ("left_arm_eef_quat", unit),
        ("left_gripper_qpos", &[0.0; 2]),
    ]);
    let problems = problems(&transform, &observation);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("right_arm_eef_quat"), "{problems:?}");
}

#[test]
fn keys_of_two_precisions_are_each_normalised_in_their_own_and_widened() {
    let transform = transform("so100");
    let arm = [0.1_f32, 0.2, 0.3, -0.4, 0.5];
    let mut observation = state(&[("gripper", &[0.123_456_789])]);
    observation.insert("single_arm".to_owned(), Values::F32(arm.to_vec()));
    let mixed = transform.apply(&observation).unwrap();
    observation.insert("gripper".to_owned(), Values::F32(vec![0.123_456_79]));
    let single = transform.apply(&observation).unwrap();
    let (Values::F64(mixed), Values::F32(single)) = (mixed.exact, single.exact) else { panic!("precision") };
    assert_eq!(mixed[..5], single[..5].iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    assert!(mixed[5] != f64::from(single[5]));
}

#[test]
fn a_data_config_without_state_gives_zeros() {
    let (mut config, metadata) = bound("so100");
    config.state_keys.clear();
    let vector =
        StateTransform::new(&config, &metadata, MAX_STATE_DIM).unwrap().apply(&BTreeMap::new()).unwrap();
    assert_eq!((vector.dim(), vector.values), (0, vec![0.0; MAX_STATE_DIM]));
}

#[test]
fn rotation_to_its_own_representation_is_normalised_by_its_statistics() {
    let (mut config, metadata) = bound("oxe_droid");
    let own = "euler_angles_rpy".parse().unwrap();
    config.state_keys[1] =
        KeySpec { key: "eef_rotation".to_owned(), mode: NormalizationMode::Q99, rotation: Some(own) };
    let transform = StateTransform::new(&config, &metadata, MAX_STATE_DIM).unwrap();
    assert_eq!(transform.apply(&droid([9.0, -9.0, 0.0])).unwrap().values[3..5], [1.0, -1.0]);
}
