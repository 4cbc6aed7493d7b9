//! Inline SVG: shapes and text as strings, in pixels from the top left.

use std::fmt::Write;

/// A drawing.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text stands against its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty drawing.
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// A rectangle of the CSS class `class`.
    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        self.add(&format!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2"/>"#
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        self.add(&format!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    /// A line through all points.
    pub(super) fn path(&mut self, class: &str, points: &[[f64; 2]]) {
        let points: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        self.add(&format!(r#"<polyline class="{class}" points="{}"/>"#, points.join(" ")));
    }

    /// A dot that says `title` under the pointer.
    pub(super) fn dot(&mut self, class: &str, [x, y]: [f64; 2], radius: f64, title: &str) {
        self.add(&format!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"><title>{}</title></circle>"#,
            escaped(title)
        ));
    }

    /// Text whose base line is at the point.
    pub(super) fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(&format!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escaped(text)
        ));
    }

    /// The element, with `label` for those who do not see it.
    pub(super) fn finish(self, label: &str) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{body}</svg>\n",
            escaped(label)
        )
    }

    fn add(&mut self, element: &str) {
        // writing to a string does not fail
        let _ = writeln!(self.body, "{element}");
    }
}

/// `text` where HTML and SVG expect text or the value of an attribute.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A logarithmic axis from `low` to `high` over `from` to `to` pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogAxis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl LogAxis {
    /// The place of `value`, at the nearer end if it is outside.
    pub(super) fn at(&self, value: f64) -> f64 {
        let (low, high) = (self.low.log10(), self.high.log10());
        let share = ((value.max(f64::MIN_POSITIVE).log10() - low) / (high - low)).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * share
    }

    /// The powers of ten on it.
    pub(super) fn decades(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
        (first..=last).map(|power| 10f64.powi(power)).collect()
    }
}

/// A step of 1, 2 or 5 times a power of ten, so that a linear axis up to `most` has four to ten lines.
pub(super) fn step(most: f64) -> f64 {
    let rough = most.max(f64::MIN_POSITIVE) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("a", [0.0, 0.0], Anchor::Start, "<script>&\"");
        let svg = svg.finish("\"<");
        assert!(
            svg.contains("&lt;script&gt;&amp;&quot;") && svg.contains("aria-label=\"&quot;&lt;\""),
            "{svg}"
        );
    }

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!([9.0, 37.0, 100.0].map(step), [2.0, 10.0, 20.0]);
        let axis = LogAxis { low: 0.1, high: 1000.0, from: 0.0, to: 400.0 };
        assert_eq!(axis.decades().len(), 5);
        assert!((axis.at(1.0) - 100.0).abs() < 1e-9 && axis.at(1e9) == 400.0);
    }
}
