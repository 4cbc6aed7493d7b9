//! Values of the built-in data configs, and the TOML format. The table below was written from NVIDIA's sources (GR00T N1.5,
//! `gr00t/experiment/data_config.py` and `examples/*/custom_data_config.py`) apart from the TOML files that it checks.
#![allow(clippy::unwrap_used)]

use std::fs;

use gr00t_host::Error;
use gr00t_host::embodiment::{
    DataConfig, EmbodimentTag, KeySpec, MAX_DATA_CONFIG_BYTES, NormalizationMode, Provenance, provenance,
    synthetic_metadata,
};
use proptest::prelude::*;

/// name, tag, language, cameras, state and action as `key:mode>rotation`.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

const TASK: &str = "annotation.human.action.task_description";
const HUMAN_TASK: &str = "annotation.human.task_description";

const TABLE: [Row; 16] = [
    (
        "fourier_gr1_arms_waist",
        "gr1",
        "annotation.human.coarse_action",
        "ego_view",
        "left_arm:sin_cos right_arm:sin_cos left_hand:sin_cos right_hand:sin_cos waist:sin_cos",
        "left_arm:min_max right_arm:min_max left_hand:min_max right_hand:min_max waist:min_max",
    ),
    (
        "fourier_gr1_arms_only",
        "gr1",
        TASK,
        "ego_view",
        "left_arm:sin_cos right_arm:sin_cos left_hand:sin_cos right_hand:sin_cos",
        "left_arm:min_max right_arm:min_max left_hand:min_max right_hand:min_max",
    ),
    (
        "fourier_gr1_full_upper_body",
        "gr1",
        TASK,
        "front_view",
        "left_arm:min_max right_arm:min_max left_hand:min_max right_hand:min_max waist:min_max neck:min_max",
        "left_arm:min_max right_arm:min_max left_hand:min_max right_hand:min_max waist:min_max neck:min_max",
    ),
    (
        "bimanual_panda_gripper",
        "new_embodiment",
        TASK,
        "right_wrist_view left_wrist_view front_view",
        "right_arm_eef_pos:min_max right_arm_eef_quat:none>rotation_6d right_gripper_qpos:min_max \
         left_arm_eef_pos:min_max left_arm_eef_quat:none>rotation_6d left_gripper_qpos:min_max",
        "right_arm_eef_pos:none right_arm_eef_rot:none right_gripper_close:binary \
         left_arm_eef_pos:none left_arm_eef_rot:none left_gripper_close:binary",
    ),
    (
        "bimanual_panda_hand",
        "new_embodiment",
        TASK,
        "right_wrist_view left_wrist_view ego_view",
        "right_arm_eef_pos:min_max right_arm_eef_quat:none>rotation_6d right_hand:min_max \
         left_arm_eef_pos:min_max left_arm_eef_quat:none>rotation_6d left_hand:min_max",
        "right_arm_eef_pos:none right_arm_eef_rot:none right_hand:min_max \
         left_arm_eef_pos:none left_arm_eef_rot:none left_hand:min_max",
    ),
    (
        "single_panda_gripper",
        "new_embodiment",
        TASK,
        "left_view right_view wrist_view",
        "end_effector_position_relative:min_max end_effector_rotation_relative:min_max>rotation_6d \
         gripper_qpos:min_max base_position:min_max base_rotation:min_max>rotation_6d",
        "end_effector_position:min_max end_effector_rotation:min_max gripper_close:binary base_motion:min_max \
         control_mode:binary",
    ),
    (
        "so100",
        "new_embodiment",
        HUMAN_TASK,
        "webcam",
        "single_arm:min_max gripper:min_max",
        "single_arm:min_max gripper:min_max",
    ),
    (
        "so100_dualcam",
        "new_embodiment",
        HUMAN_TASK,
        "front wrist",
        "single_arm:min_max gripper:min_max",
        "single_arm:min_max gripper:min_max",
    ),
    (
        "unitree_g1",
        "new_embodiment",
        HUMAN_TASK,
        "rs_view",
        "left_arm:min_max right_arm:min_max left_hand:min_max right_hand:min_max",
        "left_arm:min_max right_arm:min_max left_hand:min_max right_hand:min_max",
    ),
    (
        "unitree_g1_full_body",
        "new_embodiment",
        HUMAN_TASK,
        "rs_view",
        "left_leg:min_max right_leg:min_max waist:min_max left_arm:min_max right_arm:min_max left_hand:min_max \
         right_hand:min_max",
        "left_arm:min_max right_arm:min_max left_hand:min_max right_hand:min_max",
    ),
    (
        "oxe_droid",
        "oxe_droid",
        "annotation.language.language_instruction",
        "exterior_image_1 exterior_image_2 wrist_image",
        "eef_position:min_max eef_rotation:none>rotation_6d gripper_position:min_max",
        "eef_position_delta:none eef_rotation_delta:none>axis_angle gripper_position:binary",
    ),
    (
        "agibot_genie1",
        "agibot_genie1",
        "annotation.language.action_text",
        "top_head hand_left hand_right",
        "left_arm_joint_position:min_max right_arm_joint_position:min_max left_effector_position:min_max \
         right_effector_position:min_max head_position:min_max waist_position:min_max",
        "left_arm_joint_position:min_max right_arm_joint_position:min_max left_effector_position:min_max \
         right_effector_position:min_max head_position:min_max waist_position:min_max robot_velocity:min_max",
    ),
    (
        "libero",
        "new_embodiment",
        TASK,
        "image wrist_image",
        "x:min_max y:min_max z:min_max roll:min_max pitch:min_max yaw:min_max gripper:min_max",
        "x:min_max y:min_max z:min_max roll:min_max pitch:min_max yaw:min_max gripper:min_max",
    ),
    (
        "libero_mean_std",
        "new_embodiment",
        TASK,
        "image wrist_image",
        "x:min_max y:min_max z:min_max roll:min_max pitch:min_max yaw:min_max gripper:min_max",
        "x:mean_std y:mean_std z:mean_std roll:mean_std pitch:mean_std yaw:mean_std gripper:min_max",
    ),
    (
        "simpler_fractal",
        "new_embodiment",
        TASK,
        "image",
        "x:min_max y:min_max z:min_max rx:min_max ry:min_max rz:min_max rw:min_max gripper:min_max",
        "x:mean_std y:mean_std z:mean_std roll:mean_std pitch:mean_std yaw:mean_std gripper:min_max",
    ),
    (
        "simpler_bridge",
        "new_embodiment",
        TASK,
        "image_0",
        "x:min_max y:min_max z:min_max roll:min_max pitch:min_max yaw:min_max pad:min_max gripper:min_max",
        "x:min_max y:min_max z:min_max roll:min_max pitch:min_max yaw:min_max gripper:min_max",
    ),
];

/// Total dimensions of state (as the model sees it) and action in NVIDIA's samples.
const DIMS: [(&str, usize, usize); 13] = [
    ("fourier_gr1_arms_waist", 58, 29),
    ("fourier_gr1_arms_only", 52, 26),
    ("fourier_gr1_full_upper_body", 32, 32),
    ("bimanual_panda_gripper", 22, 14),
    ("single_panda_gripper", 20, 12),
    ("so100", 6, 6),
    ("so100_dualcam", 6, 6),
    ("unitree_g1", 28, 28),
    ("unitree_g1_full_body", 43, 28),
    ("oxe_droid", 10, 7),
    ("agibot_genie1", 20, 22),
    ("libero", 8, 7),
    ("simpler_fractal", 8, 7),
];

fn written(specs: &[KeySpec]) -> Vec<String> {
    let one = |s: &KeySpec| {
        let rotation = s.rotation.map_or_else(String::new, |r| format!(">{r}"));
        format!("{}:{}{rotation}", s.key, s.mode)
    };
    specs.iter().map(one).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn built_in_values_are_those_of_the_sources() {
    assert_eq!(DataConfig::builtin_names().collect::<Vec<_>>(), TABLE.map(|row| row.0));
    for (name, tag, language, video, state, action) in TABLE {
        let config = DataConfig::builtin(name).unwrap();
        assert_eq!(config.name, name);
        assert_eq!(config.embodiment.name(), tag, "{name}");
        assert_eq!(config.language_key, language, "{name}");
        assert_eq!(config.video_keys, words(video), "{name}");
        assert_eq!(written(&config.state_keys), words(state), "{name}");
        assert_eq!(written(&config.action_keys), words(action), "{name}");
        assert_eq!((config.action_horizon, config.embodiment_id), (16, None), "{name}");
    }
}

#[test]
fn six_built_ins_have_a_golden_and_the_others_are_listed_as_from_the_table() {
    let golden: Vec<_> =
        DataConfig::builtin_names().filter(|n| provenance(n) == Some(Provenance::NvidiaGolden)).collect();
    assert_eq!(
        golden,
        [
            "fourier_gr1_arms_only",
            "fourier_gr1_full_upper_body",
            "bimanual_panda_gripper",
            "so100",
            "unitree_g1",
            "oxe_droid"
        ]
    );
    assert_eq!(
        DataConfig::builtin_names().filter(|n| provenance(n) == Some(Provenance::TableOnly)).count(),
        10
    );
    assert_eq!(provenance("my_robot"), None);
}

#[test]
fn synthetic_metadata_fits_every_built_in_config() {
    for name in DataConfig::builtin_names() {
        let config = DataConfig::builtin(name).unwrap();
        let metadata = synthetic_metadata(&config).unwrap();
        assert_eq!(metadata, synthetic_metadata(&config).unwrap(), "{name} is made the same every time");
        let (embodiment, warning) = metadata.embodiment(&config.embodiment).unwrap();
        assert_eq!(warning, None);
        for camera in &config.video_keys {
            assert_eq!(embodiment.modalities.video[camera].resolution, [256, 256], "{name} {camera}");
        }
        let state = gr00t_host::state::StateTransform::new(&config, embodiment, 64).unwrap();
        let action = gr00t_host::action::ActionTransform::new(&config, embodiment, 32).unwrap();
        let state_dim: usize = state.keys().iter().map(gr00t_host::state::KeyTransform::model_dim).sum();
        if let Some((_, want_state, want_action)) = DIMS.iter().find(|(n, ..)| *n == name) {
            assert_eq!((state_dim, action.dim()), (*want_state, *want_action), "{name}");
        }
        assert!(action.constant_keys().is_empty(), "{name}");
    }
}

#[test]
fn synthetic_metadata_is_refused_for_a_config_of_unknown_dimensions() {
    let mut config = DataConfig::builtin("so100").unwrap();
    config.name = "my_arm".to_owned();
    let error = synthetic_metadata(&config).unwrap_err().to_string();
    assert!(error.contains("my_arm") && error.contains("supply a metadata file"), "{error}");
}

#[test]
fn nvidias_module_class_names_are_read() {
    let by_class = DataConfig::load("examples.Libero.custom_data_config:LiberoDataConfigMeanStd").unwrap();
    assert_eq!(by_class, DataConfig::builtin("libero_mean_std").unwrap());
    let error = DataConfig::load("my.module:MyDataConfig").unwrap_err().to_string();
    assert!(error.contains("write the config as a .toml file"), "{error}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_and_all() {
    let error = DataConfig::load("so10").unwrap_err().to_string();
    assert!(error.contains("did you mean so100?") && error.contains("agibot_genie1"), "{error}");
}

const MINE: &str = r#"
    embodiment = "my_robot"
    embodiment_id = 3
    language = "annotation.task"
    video = ["video.front"]
    state = [{ key = "state.quat", rotation = "euler_angles_ypr", mode = "min_max" }]
    action = [{ key = "arm" }]
    action_horizon = 8
"#;

#[test]
fn a_file_of_ones_own_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("arm.toml");
    fs::write(&path, MINE).unwrap();
    let config = DataConfig::load(path.to_str().unwrap()).unwrap();
    assert_eq!(config.name, "arm");
    assert_eq!(config.embodiment, EmbodimentTag::Other("my_robot".to_owned()));
    assert_eq!(config.embodiment.resolve_slot(config.embodiment_id, 32).unwrap(), 3);
    assert_eq!(config.video_keys, ["front"]);
    assert_eq!(written(&config.state_keys), ["quat:min_max>euler_angles_ypr"]);
    assert_eq!(config.action_keys[0].mode, NormalizationMode::None);
    assert_eq!(config.action_horizon, 8);
}

#[test]
fn a_malformed_file_is_refused_with_its_place() {
    for (broken, wanted) in [
        (MINE.replace("min_max", "minmax"), "minmax"),
        (MINE.replace("euler_angles_ypr", "euler_angles_yyr"), "euler_angles_yyr"),
        (MINE.replace("language", "langage"), "langage"),
        (MINE.replace("action_horizon = 8", "action_horizon = 0"), "action_horizon 0"),
        (MINE.replace(r#"[{ key = "arm" }]"#, "[]"), "no action key"),
        (
            MINE.replace(r#"{ key = "arm" }"#, r#"{ key = "arm" }, { key = "action.arm" }"#),
            "action key arm twice",
        ),
        ("video = [".to_owned(), "line 1"),
    ] {
        let message = DataConfig::from_toml("mine", &broken).unwrap_err().to_string();
        assert!(message.contains(wanted) && !message.contains('\n'), "{message}");
    }
}

#[test]
fn an_oversized_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big.toml");
    fs::write(&path, "#".repeat(MAX_DATA_CONFIG_BYTES as usize + 1)).unwrap();
    assert!(matches!(DataConfig::from_toml_file(&path), Err(Error::Parse { .. })));
    assert!(matches!(DataConfig::from_toml_file(folder.path().join("absent.toml")), Err(Error::Io { .. })));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = DataConfig::from_toml("any", &text);
    }

    #[test]
    fn no_damage_to_a_valid_file_makes_the_parser_panic(at in 0..MINE.len(), junk in "\\PC{0,4}") {
        let mut text = MINE.to_owned();
        text.replace_range(at..=at, &junk);
        let _ = DataConfig::from_toml("any", &text);
    }
}
