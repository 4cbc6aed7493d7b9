//! `prompts.json` and `prompts_multi.json`: chat text and token ids, in upstream's mode, where special tokens in an
//! instruction are live.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use gr00t_host::prompt::{
    IMAGE_TOKEN_ID, InstructionForm, PAD_TOKEN_ID, Prompt, PromptOptions, Tokenizer, left_pad,
};
use serde::Deserialize;
use serde_json::Value;

use super::json;
use crate::verify::report::{Row, Verdict};

/// One view, many instructions.
pub(super) const FILE: &str = "prompts.json";
/// Several views, and a batch.
pub(super) const MULTI_FILE: &str = "prompts_multi.json";

/// Image tokens of one 224 x 224 view.
const TOKENS_PER_VIEW: usize = 256;
/// Longest expected sequence.
const MAX_IDS: usize = 1 << 20;

#[derive(Deserialize)]
struct File {
    image_token_id: u32,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    instruction: String,
    plain: Option<Expected>,
    official_policy: Option<Expected>,
}

/// What upstream makes of one instruction.
#[derive(Deserialize)]
#[serde(untagged)]
enum Expected {
    Error { error: String },
    Prompt(Box<ExpectedPrompt>),
}

#[derive(Deserialize)]
struct ExpectedPrompt {
    language_text: String,
    template_output: String,
    /// `[token, repeat count]`.
    ids_rle: Vec<(u32, usize)>,
    length: usize,
    attention_mask_all_ones: bool,
    n_pixel_values: usize,
}

impl ExpectedPrompt {
    /// The ids one by one, unless they are beyond reason.
    fn ids(&self) -> Option<Vec<u32>> {
        let total = self.ids_rle.iter().try_fold(0usize, |sum, &(_, n)| sum.checked_add(n))?;
        let ids = self.ids_rle.iter().flat_map(|&(id, n)| std::iter::repeat_n(id, n));
        (total <= MAX_IDS).then(|| ids.collect())
    }
}

/// One row per instruction and form.
pub(super) fn rows(path: &Path) -> Result<Vec<Row>> {
    let file: File = json::read(path)?;
    if file.image_token_id != IMAGE_TOKEN_ID {
        bail!("image_token_id is {}, wanted {IMAGE_TOKEN_ID}", file.image_token_id);
    }
    let mut rows = Vec::new();
    for case in &file.cases {
        let forms = [
            ("plain", InstructionForm::Plain, &case.plain),
            ("official", InstructionForm::PyList, &case.official_policy),
        ];
        for (name, form, expected) in forms {
            let row_name = format!("prompt {name} {}", shortened(&case.instruction));
            rows.push(match expected {
                Some(expected) => judge(row_name, &case.instruction, form, expected),
                None => Row::fail(row_name, "no expectation in the file"),
            });
        }
    }
    Ok(rows)
}

fn judge(name: String, instruction: &str, form: InstructionForm, expected: &Expected) -> Row {
    let got = prompt(instruction, 1, form);
    match (expected, got) {
        (Expected::Error { error }, Err(ours)) => {
            Row::new(name, Verdict::Pass, format!("refused ({ours}), as upstream raises {error}"))
        }
        (Expected::Error { error }, Ok(_)) => Row::fail(name, format!("accepted, upstream raises {error}")),
        (Expected::Prompt(_), Err(ours)) => Row::fail(name, format!("refused: {ours}")),
        (Expected::Prompt(expected), Ok(got)) => {
            let Some(ids) = expected.ids() else {
                return Row::fail(name, format!("more than {MAX_IDS} ids expected"));
            };
            let mut wrong = differences(&got, &expected.template_output, &ids);
            if got.language != expected.language_text {
                wrong.push(format!("instruction {:?}, wanted {:?}", got.language, expected.language_text));
            }
            if expected.length != ids.len()
                || !expected.attention_mask_all_ones
                || expected.n_pixel_values != 1
            {
                wrong.push("the expectation contradicts itself".into());
            }
            verdict(name, &wrong, ids.len())
        }
    }
}

/// Rows for several views and for a batch of two.
pub(super) fn multi_rows(path: &Path) -> Result<Vec<Row>> {
    let file: BTreeMap<String, Value> = json::read(path)?;
    let mut rows = Vec::new();
    for (key, value) in &file {
        if key == "views" {
            let cases: BTreeMap<usize, ViewsCase> = BTreeMap::deserialize(value).context("views")?;
            rows.extend(cases.iter().map(|(&views, case)| {
                let name = format!("prompt of {views} views");
                views_row(&name, views, case).unwrap_or_else(|e| Row::fail(&name, format!("{e:#}")))
            }));
        } else if value.get("attention_mask").is_some() {
            let case = BatchCase::deserialize(value).with_context(|| key.clone())?;
            let name = format!("prompt batch of {}", case.texts.len());
            rows.push(batch_row(&name, &case).unwrap_or_else(|e| Row::fail(&name, format!("{e:#}"))));
        } else {
            rows.push(Row::info(format!("prompt {key}"), "not compared: one frame per view here"));
        }
    }
    Ok(rows)
}

#[derive(Deserialize)]
struct ViewsCase {
    template_output: String,
    ids: Vec<u32>,
    n_pixel_values: usize,
}

/// The instruction is not in the file beside its rendering, so it is taken from there.
fn views_row(name: &str, views: usize, case: &ViewsCase) -> Result<Row> {
    let last_view = format!("<image-{views}>");
    let instruction = case
        .template_output
        .split_once(last_view.as_str())
        .and_then(|(_, rest)| rest.strip_suffix("<|im_end|>\n<|im_start|>assistant\n"))
        .ok_or_else(|| anyhow!("no instruction after {last_view} in the expected text"))?;
    let got = prompt(instruction, views, InstructionForm::Plain)?;
    let mut wrong = differences(&got, &case.template_output, &case.ids);
    if case.n_pixel_values != views {
        wrong.push(format!("{} images expected for {views} views", case.n_pixel_values));
    }
    Ok(verdict(name.to_string(), &wrong, case.ids.len()))
}

#[derive(Deserialize)]
struct BatchCase {
    texts: Vec<String>,
    ids: Vec<Vec<u32>>,
    attention_mask: Vec<Vec<u32>>,
}

fn batch_row(name: &str, case: &BatchCase) -> Result<Row> {
    let prompts: Vec<Vec<u32>> = case
        .texts
        .iter()
        .map(|text| Ok(prompt(text, 1, InstructionForm::Plain)?.input_ids))
        .collect::<Result<_>>()?;
    let (ids, mask) = left_pad(&prompts, PAD_TOKEN_ID);
    let mut wrong = Vec::new();
    if ids != case.ids {
        wrong.push("padded ids differ".to_string());
    }
    if mask != case.attention_mask {
        wrong.push("attention mask differs".into());
    }
    Ok(verdict(name.to_string(), &wrong, case.ids.iter().map(Vec::len).sum()))
}

fn prompt(instruction: &str, views: usize, form: InstructionForm) -> gr00t_host::Result<Prompt> {
    let options = PromptOptions { form, allow_special: true };
    Tokenizer::qwen2().prompt(Some(instruction), views, TOKENS_PER_VIEW, IMAGE_TOKEN_ID, &options)
}

fn differences(got: &Prompt, text: &str, ids: &[u32]) -> Vec<String> {
    let mut wrong = Vec::new();
    if got.text != text {
        wrong.push(format!("text {:?}, wanted {text:?}", got.text));
    }
    if got.input_ids != ids {
        let at = got.input_ids.iter().zip(ids).take_while(|(a, b)| a == b).count();
        wrong.push(format!("{} ids, wanted {}, first difference at {at}", got.input_ids.len(), ids.len()));
    }
    wrong
}

fn verdict(name: String, wrong: &[String], tokens: usize) -> Row {
    if wrong.is_empty() {
        Row::new(name, Verdict::Pass, format!("text and {tokens} ids equal"))
    } else {
        Row::fail(name, wrong.join("; "))
    }
}

/// An instruction as one short word of a table.
fn shortened(instruction: &str) -> String {
    const MOST: usize = 24;
    let shown: String = instruction.escape_debug().take(MOST).collect();
    if instruction.chars().count() > MOST { format!("{shown}…") } else { shown }
}
