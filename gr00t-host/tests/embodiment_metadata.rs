//! Embodiment metadata and tags: what is read, and what the refusals say.
#![allow(clippy::unwrap_used)]

use std::fs;

use gr00t_host::Error;
use gr00t_host::embodiment::{DataConfig, EmbodimentTag, MAX_METADATA_BYTES, Metadata, synthetic_metadata};
use gr00t_host::state::StateTransform;
use proptest::prelude::*;

fn synthetic(name: &str) -> Metadata {
    synthetic_metadata(&DataConfig::builtin(name).unwrap()).unwrap()
}

fn text(metadata: &Metadata) -> String {
    serde_json::to_string(metadata).unwrap()
}

#[test]
fn tags_select_nvidias_projector_slots() {
    let slots = EmbodimentTag::KNOWN.map(|tag| (tag.name().to_owned(), tag.resolve_slot(None, 32).unwrap()));
    let want = [("gr1", 24), ("oxe_droid", 17), ("agibot_genie1", 26), ("new_embodiment", 31)];
    assert_eq!(slots, want.map(|(name, slot)| (name.to_owned(), slot)));
}

#[test]
fn an_explicit_slot_wins_and_must_exist() {
    assert_eq!(EmbodimentTag::Gr1.resolve_slot(Some(5), 32).unwrap(), 5);
    assert!(EmbodimentTag::Gr1.resolve_slot(Some(32), 32).is_err());
    assert!(EmbodimentTag::Gr1.resolve_slot(None, 8).is_err(), "a shrunk model has fewer slots");
    let Ok(own) = "my_robot".parse::<EmbodimentTag>();
    let error = own.resolve_slot(None, 32).unwrap_err().to_string();
    assert!(error.contains("my_robot") && error.contains("embodiment_id"), "{error}");
}

#[test]
fn a_metadata_file_survives_writing_and_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.json");
    for name in DataConfig::builtin_names() {
        let metadata = synthetic(name);
        fs::write(&path, text(&metadata)).unwrap();
        assert_eq!(Metadata::from_file(&path).unwrap(), metadata, "{name}");
    }
}

/// GR#213: early checkpoints name the embodiment `agibot`.
#[test]
fn the_old_agibot_name_is_read_with_a_warning() {
    let renamed = text(&synthetic("agibot_genie1")).replace("\"agibot_genie1\"", "\"agibot\"");
    let metadata = Metadata::from_bytes(renamed.as_bytes()).unwrap();
    let (_, warning) = metadata.embodiment(&EmbodimentTag::AgibotGenie1).unwrap();
    assert!(warning.unwrap().contains("agibot"));
    assert_eq!("agibot".parse(), Ok(EmbodimentTag::AgibotGenie1));
}

#[test]
fn an_unknown_tag_lists_those_present() {
    let mut metadata = synthetic("fourier_gr1_arms_only");
    metadata.merge(synthetic("oxe_droid"));
    let error = metadata.embodiment(&EmbodimentTag::Other("franka".to_owned())).unwrap_err().to_string();
    assert!(error.contains("franka") && error.contains("gr1, oxe_droid"), "{error}");
}

/// GR#28, GR#105: base weights with a robot of one's own.
#[test]
fn the_base_checkpoint_without_new_embodiment_says_what_to_supply() {
    let error =
        synthetic("fourier_gr1_arms_only").embodiment(&EmbodimentTag::NewEmbodiment).unwrap_err().to_string();
    assert!(error.contains("fine-tuned checkpoint") && error.contains("metadata.json"), "{error}");
}

#[test]
fn null_statistics_are_read_as_not_a_number_and_refused_where_they_are_needed() {
    let config = DataConfig::builtin("so100").unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text(&synthetic("so100"))).unwrap();
    json["new_embodiment"]["statistics"]["state"]["single_arm"]["max"][2] = serde_json::Value::Null;
    let metadata = Metadata::from_bytes(json.to_string().as_bytes()).unwrap();
    let (embodiment, _) = metadata.embodiment(&config.embodiment).unwrap();
    let error = StateTransform::new(&config, embodiment, 64).unwrap_err().to_string();
    assert!(error.contains("single_arm") && error.contains("max[2] is NaN"), "{error}");
}

#[test]
fn pythons_nan_literal_is_named() {
    let broken = text(&synthetic("so100")).replacen("\"max\":[", "\"max\":[NaN,", 1);
    let error = Metadata::from_bytes(broken.as_bytes()).unwrap_err();
    assert!(error.contains("NaN") && error.contains("line 1"), "{error}");
}

#[test]
fn malformed_metadata_is_refused() {
    let good = text(&synthetic("oxe_droid"));
    for broken in [
        good.replace("euler_angles_rpy", "euler_angles_xyz"),
        good.replace("\"statistics\"", "\"stats\""),
        good.replace("\"shape\":[3]", "\"shape\":[-3]"),
        "[]".to_owned(),
        String::new(),
    ] {
        assert!(Metadata::from_bytes(broken.as_bytes()).is_err(), "{broken}");
    }
}

#[test]
fn an_oversized_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.json");
    fs::write(&path, vec![b' '; MAX_METADATA_BYTES as usize + 1]).unwrap();
    assert!(matches!(Metadata::from_file(&path), Err(Error::Parse { .. })));
    assert!(matches!(Metadata::from_file(folder.path().join("absent")), Err(Error::Io { .. })));
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Metadata::from_bytes(&bytes);
    }

    #[test]
    fn no_damage_makes_parsing_or_binding_panic(at in 0_usize..4000, junk in "[-0-9eE.,\\[\\]\"{}a-z]{0,4}") {
        let config = DataConfig::builtin("oxe_droid").unwrap();
        let mut json = text(&synthetic("oxe_droid"));
        let at = at % json.len();
        json.replace_range(at..=at, &junk);
        let Ok(metadata) = Metadata::from_bytes(json.as_bytes()) else { return Ok(()) };
        let Ok((embodiment, _)) = metadata.embodiment(&config.embodiment) else { return Ok(()) };
        let _ = StateTransform::new(&config, embodiment, 64);
        let _ = gr00t_host::action::ActionTransform::new(&config, embodiment, 32);
    }
}
