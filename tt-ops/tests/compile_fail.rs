//! What must not compile: data types mixed up, released traces replayed, devices that cannot be.

#[test]
fn mistakes_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_fail/*.rs");
}
