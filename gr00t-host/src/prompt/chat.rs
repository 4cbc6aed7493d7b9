//! The chat text around an instruction: Eagle's `chat_template.json` and its media placeholders.

/// Everything before the first view.
pub(super) const OPENING: &str =
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n";
/// Everything after the instruction.
pub(super) const CLOSING: &str = "<|im_end|>\n<|im_start|>assistant\n";
/// [`OPENING`] as tokens.
pub(super) const OPENING_IDS: [u32; 14] =
    [151_644, 8948, 198, 2610, 525, 264, 10_950, 17_847, 13, 151_645, 198, 151_644, 872, 198];
/// [`CLOSING`] as tokens.
pub(super) const CLOSING_IDS: [u32; 5] = [151_645, 198, 151_644, 77_091, 198];

/// The chat for `views` views and the text `language`, with `<image-k>` where the views go.
pub(super) fn render(views: usize, language: &str) -> String {
    let images: Vec<String> = (1..=views).map(|view| format!("<image-{view}>")).collect();
    [OPENING, &images.concat(), language, CLOSING].concat()
}

/// The ordinary text that takes the place of `<image-k>`, before `<img>` and the image tokens.
pub(super) fn view_label(view: usize) -> String {
    format!("<image {view}>")
}

/// The first media placeholder of `text` (`<image-k>` or `<video-k>`, `k` any run of digits), if there is one.
/// Upstream searches the whole rendered chat for them, so also the instruction. Digits of any script count.
pub(super) fn find_placeholder(text: &str) -> Option<&str> {
    text.match_indices('<').find_map(|(start, _)| {
        let from = text.get(start..)?;
        let number = from.strip_prefix("<image-").or_else(|| from.strip_prefix("<video-"))?;
        let end = number.find(|c: char| !c.is_numeric())?;
        let closed = end > 0 && number.get(end..)?.starts_with('>');
        if closed { from.get(..=from.len() - number.len() + end) } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::find_placeholder;

    #[test]
    fn placeholders_are_found_anywhere_and_only_whole_ones() {
        assert_eq!(find_placeholder("go <image-1> now"), Some("<image-1>"));
        assert_eq!(find_placeholder("<<video-007>"), Some("<video-007>"));
        assert_eq!(find_placeholder("<image-<image-２>"), Some("<image-２>"));
        for text in
            ["", "<image->", "<image-1", "<image 1>", "<image-1a>", "<image--1>", "<audio-1>", "image-1>"]
        {
            assert_eq!(find_placeholder(text), None, "{text}");
        }
    }
}
