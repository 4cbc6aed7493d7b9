//! Prompts against `golden/host/prompts.json` and `prompts_multi.json`: what NVIDIA's processor gives, in upstream
//! mode, in which special tokens inside an instruction are live. The fixture holds the part of the former that
//! depends on the instruction, so that it is checked where the goldens are absent.

use gr00t_host::prompt::{IMAGE_TOKEN_ID, InstructionForm, PAD_TOKEN_ID, PromptOptions, Tokenizer, left_pad};
use serde_json::Value;

const FORMS: [(&str, InstructionForm); 2] =
    [("plain", InstructionForm::Plain), ("official_policy", InstructionForm::PyList)];

fn golden(name: &str) -> Option<Value> {
    let path = format!("{}/../../shared/golden/host/{name}", env!("CARGO_MANIFEST_DIR"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {path} is absent");
        return None;
    };
    Some(serde_json::from_str(&text).expect("golden is JSON"))
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).expect("token ids")
}

fn expand(runs: &Value) -> Vec<u32> {
    let runs: Vec<(u32, usize)> = serde_json::from_value(runs.clone()).expect("runs of token ids");
    runs.into_iter().flat_map(|(id, count)| std::iter::repeat_n(id, count)).collect()
}

/// Instruction; its text in the chat and that text's tokens, plain and as a Python list.
type Case = (String, String, Vec<u32>, String, Vec<u32>);

#[test]
fn instructions_of_the_fixture_give_upstreams_text_and_tokens() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("fixtures/prompts_upstream.json")).expect("fixture is JSON");
    assert_eq!(cases.len(), 19);
    for (instruction, plain, plain_ids, list, list_ids) in cases {
        for (form, text, ids) in
            [(InstructionForm::Plain, plain, plain_ids), (InstructionForm::PyList, list, list_ids)]
        {
            let options = PromptOptions { form, allow_special: true };
            let got = Tokenizer::qwen2()
                .prompt(Some(&instruction), 1, 256, IMAGE_TOKEN_ID, &options)
                .expect("a prompt");
            assert_eq!(got.language, text);
            assert_eq!(got.input_ids[277..got.input_ids.len() - 5], ids, "{text}");
            assert_eq!(got.instruction_tokens, ids.len(), "{text}");
        }
    }
}

#[test]
fn every_instruction_gives_upstreams_text_and_tokens_in_both_forms() {
    let Some(golden) = golden("prompts.json") else { return };
    let tokenizer = Tokenizer::qwen2();
    let cases = golden["cases"].as_array().expect("cases");
    assert!(cases.len() >= 20, "{} cases", cases.len());
    for case in cases {
        let instruction = case["instruction"].as_str().expect("instruction");
        for (key, form) in FORMS {
            let want = &case[key];
            let options = PromptOptions { form, allow_special: true };
            let got = tokenizer.prompt(Some(instruction), 1, 256, IMAGE_TOKEN_ID, &options);
            if want.get("error").is_some() {
                let message = got.expect_err("upstream raises").to_string();
                assert!(message.contains("<image-2>"), "{message}");
                continue;
            }
            let got = got.expect("a prompt");
            assert_eq!(got.language, want["language_text"], "{key} {instruction:?}");
            assert_eq!(got.text, want["template_output"], "{key} {instruction:?}");
            assert_eq!(got.input_ids, expand(&want["ids_rle"]), "{key} {instruction:?}");
            assert_eq!(got.input_ids.len(), 282 + got.instruction_tokens, "{key} {instruction:?}");
        }
    }
}

#[test]
fn default_mode_differs_from_upstream_only_where_special_tokens_are_in_the_instruction() {
    let Some(golden) = golden("prompts.json") else { return };
    let tokenizer = Tokenizer::qwen2();
    for case in golden["cases"].as_array().expect("cases") {
        let instruction = case["instruction"].as_str().expect("instruction");
        for (key, form) in FORMS {
            let options = PromptOptions { form, allow_special: false };
            let got =
                tokenizer.prompt(Some(instruction), 1, 256, IMAGE_TOKEN_ID, &options).expect("a prompt");
            let injected =
                ["<|im_end|>", "<|endoftext|>", "<image-2>"].iter().any(|s| instruction.contains(s));
            let same = !case[key]["ids_rle"].is_null() && got.input_ids == expand(&case[key]["ids_rle"]);
            assert_eq!(same, !injected, "{key} {instruction:?}");
        }
    }
}

#[test]
fn one_to_three_views_give_upstreams_text_and_tokens() {
    let Some(golden) = golden("prompts_multi.json") else { return };
    let options = PromptOptions { form: InstructionForm::Plain, allow_special: true };
    let views = golden["views"].as_object().expect("views");
    assert_eq!(views.len(), 3);
    for (count, want) in views {
        let count = count.parse().expect("a number of views");
        let got = Tokenizer::qwen2()
            .prompt(Some("pick up the red apple"), count, 256, IMAGE_TOKEN_ID, &options)
            .expect("a prompt");
        assert_eq!(got.text, want["template_output"]);
        assert_eq!(got.input_ids, ids(&want["ids"]));
    }
}

#[test]
fn uneven_batch_is_padded_as_upstream_pads_it() {
    let Some(golden) = golden("prompts_multi.json") else { return };
    let want = &golden["batch2_left_padded"];
    let options = PromptOptions { form: InstructionForm::Plain, allow_special: true };
    let prompts: Vec<Vec<u32>> = want["texts"]
        .as_array()
        .expect("texts")
        .iter()
        .map(|text| {
            let prompt = Tokenizer::qwen2().prompt(text.as_str(), 1, 256, IMAGE_TOKEN_ID, &options);
            prompt.expect("a prompt").input_ids
        })
        .collect();
    let (got, mask) = left_pad(&prompts, PAD_TOKEN_ID);
    for (row, (got, mask)) in got.iter().zip(&mask).enumerate() {
        assert_eq!(*got, ids(&want["ids"][row]));
        assert_eq!(*mask, ids(&want["attention_mask"][row]));
    }
}
