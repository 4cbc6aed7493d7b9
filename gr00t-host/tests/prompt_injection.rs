//! Arbitrary and hostile instructions: in the default mode none reaches a special token, and every one is kept.

use bpe_openai::voyage3_base;
use gr00t_host::prompt::{DEFAULT_INSTRUCTION, Prompt, PromptOptions, Tokenizer};
use gr00t_host::prompt::{IMAGE_TOKEN_ID, InstructionForm, MAX_INSTRUCTION_CHARS, PAD_TOKEN_ID};
use proptest::prelude::*;

const FORMS: [InstructionForm; 2] = [InstructionForm::Plain, InstructionForm::PyList];

fn prompt(instruction: &str, views: usize, options: PromptOptions) -> gr00t_host::Result<Prompt> {
    Tokenizer::qwen2().prompt(Some(instruction), views, 256, IMAGE_TOKEN_ID, &options)
}

/// Whole and broken special tokens and placeholders, quotes and escapes, glued to arbitrary text.
fn hostile() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        prop::sample::select(vec![
            "<|im_end|>",
            "<|im_start|>",
            "<|endoftext|>",
            "<IMG_CONTEXT>",
            "<img>",
            "</img>",
            "<image-1>",
            "<video-1>",
            "<image 1>",
            "</interval>",
            "<|im_",
            "end|>",
            "<IMG_",
            "CONTEXT>",
            "<",
            ">",
            "|",
            "'",
            "\"",
            "\\",
            "']",
            "\n",
            "\r\n",
            "\0",
            " ",
            "assistant",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
        "[a-z ]{0,12}",
    ];
    prop::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn default_mode_keeps_every_instruction_as_ordinary_text(instruction in hostile(), views in 1_usize..5) {
        for form in FORMS {
            let got = prompt(&instruction, views, PromptOptions { form, allow_special: false }).expect("a prompt");
            let image_tokens = got.input_ids.iter().filter(|id| **id == IMAGE_TOKEN_ID).count();
            prop_assert_eq!(image_tokens, views * 256);
            let language = &got.input_ids[got.input_ids.len() - 5 - got.instruction_tokens..got.input_ids.len() - 5];
            prop_assert!(language.iter().all(|id| *id < PAD_TOKEN_ID), "{:?}", language);
            let decoded = voyage3_base().decode(language).expect("UTF-8");
            let normalised = voyage3_base().normalize(got.language.as_str());
            prop_assert_eq!(decoded.as_str(), normalised.as_str());
        }
    }

    #[test]
    fn what_surrounds_the_instruction_is_the_same_for_every_instruction(instruction in hostile()) {
        let options = PromptOptions::default();
        let (got, empty) = (prompt(&instruction, 2, options), prompt("", 2, options));
        let (got, empty) = (got.expect("a prompt"), empty.expect("a prompt"));
        let head = empty.input_ids.len() - 5 - empty.instruction_tokens;
        prop_assert_eq!(&got.input_ids[..head], &empty.input_ids[..head]);
        prop_assert_eq!(&got.input_ids[got.input_ids.len() - 5..], &empty.input_ids[empty.input_ids.len() - 5..]);
        prop_assert_eq!(got.input_ids.len(), head + got.instruction_tokens + 5);
    }

    #[test]
    fn both_modes_agree_on_text_without_angle_brackets(instruction in "[^<]{0,60}") {
        for form in FORMS {
            let [strict, upstream] = [false, true].map(|allow_special| PromptOptions { form, allow_special });
            prop_assert_eq!(
                prompt(&instruction, 1, strict).expect("a prompt"),
                prompt(&instruction, 1, upstream).expect("a prompt")
            );
        }
    }

    #[test]
    fn upstream_mode_gives_a_prompt_with_the_views_images_or_an_error(instruction in hostile()) {
        let options = PromptOptions { allow_special: true, ..PromptOptions::default() };
        if let Ok(got) = prompt(&instruction, 1, options) {
            prop_assert_eq!(got.input_ids.iter().filter(|id| **id == IMAGE_TOKEN_ID).count(), 256);
        }
    }
}

#[test]
fn placeholders_and_image_tokens_are_errors_in_upstream_mode() {
    for form in FORMS {
        let options = PromptOptions { form, allow_special: true };
        for (instruction, what) in [
            ("see <image-1>", "<image-1>"),
            ("see <image-2>", "<image-2>"),
            ("see <video-1>", "<video-1>"),
            ("see <IMG_CONTEXT>", "257 image tokens"),
        ] {
            let message = prompt(instruction, 1, options).expect_err(instruction).to_string();
            assert!(message.contains(what), "{message}");
        }
    }
}

#[test]
fn missing_instruction_is_upstreams_default_and_plain_in_both_forms() {
    for form in FORMS {
        let options = PromptOptions { form, allow_special: false };
        let got = Tokenizer::qwen2().prompt(None, 1, 256, IMAGE_TOKEN_ID, &options).expect("a prompt");
        assert_eq!((got.language.as_str(), got.input_ids.len()), (DEFAULT_INSTRUCTION, 287));
    }
}

#[test]
fn instruction_is_limited_in_characters_not_bytes() {
    let options = PromptOptions::default();
    let longest = "字".repeat(MAX_INSTRUCTION_CHARS);
    assert!(prompt(&longest, 1, options).is_ok());
    let message = prompt(&format!("{longest}!"), 1, options).expect_err("too long").to_string();
    assert_eq!(message, "prompt: instruction of 2001 characters, wanted at most 2000");
}

#[test]
fn views_and_image_tokens_must_be_some_and_not_too_many() {
    for (views, tokens) in [(0, 256), (1, 0), (usize::MAX, 2), (1 << 20, 1 << 20)] {
        let got =
            Tokenizer::qwen2().prompt(Some("go"), views, tokens, IMAGE_TOKEN_ID, &PromptOptions::default());
        assert!(got.is_err(), "{views} views of {tokens}");
    }
}

#[test]
fn another_image_token_takes_the_placeholders_place() {
    let options = PromptOptions::default();
    let got = Tokenizer::qwen2().prompt(Some("go"), 2, 16, 300, &options).expect("a prompt");
    assert_eq!(got.input_ids.iter().filter(|id| **id == 300).count(), 32);
    assert!(!got.input_ids.contains(&IMAGE_TOKEN_ID));
    // an ordinary token of the instruction with that id would be taken for an image
    let clash = Tokenizer::qwen2().encode("go").expect("tokens")[0];
    let options = PromptOptions { form: InstructionForm::Plain, ..options };
    let message =
        Tokenizer::qwen2().prompt(Some("go"), 2, 16, clash, &options).expect_err("a clash").to_string();
    assert!(message.contains("33 image tokens for 2 views of 16"), "{message}");
}
