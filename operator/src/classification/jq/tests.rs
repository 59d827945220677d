use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

/// Returns the results of a query as compact JSON, or the text `error`.
fn results(query: &str, input: &Json) -> String {
    let Ok(query) = JqQuery::parse(query) else { return "error".to_owned() };
    let run = || {
        let mut results = Vec::new();
        let input = Value::from_json(input).map_err(query_error)?;
        let end = Evaluator::default().run(&query.0, input, &mut |_, value| {
            results.push(value.to_json());
            Ok(())
        });
        end.map(|()| results.join(" ")).map_err(query_error)
    };
    on_large_stack(run).unwrap_or_else(|_| "error".to_owned())
}

/// Compares a table of queries with the results of gojq 0.12.17. The table has one column per input.
fn check_table(table: &str, inputs: &[Json]) {
    let mut lines = 0;
    for line in table.lines() {
        let mut columns = line.split('\t');
        let query = columns.next().unwrap();
        for (input, expected) in inputs.iter().zip(columns.by_ref()) {
            assert_eq!(results(query, input), expected, "{query}");
        }
        assert_eq!(columns.next(), None, "{query}");
        lines += 1;
    }
    assert!(lines > 90, "the table has {lines} lines");
}

#[test]
fn results_on_inventories_match_gojq() {
    let inputs = [
        include_str!("tests/physical.json"),
        include_str!("tests/virtual.json"),
        include_str!("tests/empty.json"),
    ];
    let inputs = inputs.map(|input| serde_json::from_str(input).unwrap());
    check_table(include_str!("tests/inventory.tsv"), &inputs);
}

#[test]
fn results_of_the_language_match_gojq() {
    check_table(include_str!("tests/language.tsv"), &[Json::Null]);
}

#[test]
fn outcome_is_a_single_result() {
    let outcome = |query: &str| JqQuery::parse(query)?.outcome(&json!({"cpu": {"count": 8}}));
    assert_eq!(outcome(".cpu.count >= 8"), Ok(QueryOutcome::True));
    assert_eq!(outcome(".cpu.count > 8"), Ok(QueryOutcome::False));
    assert_eq!(outcome(".cpu.count"), Ok(QueryOutcome::Other));
    assert_eq!(outcome("null"), Ok(QueryOutcome::Other));
    assert_eq!(outcome("empty"), Err(QueryError::NoResult));
    assert_eq!(outcome("true, true"), Err(QueryError::SeveralResults));
    assert_eq!(outcome("true, error(\"x\")"), Err(QueryError::Evaluation("x".to_owned())));
    assert_eq!(outcome("true, true, error(\"x\")"), Err(QueryError::SeveralResults));
    assert_eq!(outcome("try (true, true) catch false"), Err(QueryError::SeveralResults));
}

#[test]
fn endless_query_exceeds_a_limit() {
    for query in [
        "[range(1e12)]",
        "[range(1e12)] | length > 5",
        "def f: f; f",
        "def f: f, f; f",
        "def f: 1 + f; f",
        "def f: [f]; f",
        "def f: try f catch f; f",
        "def f: f? // f; f",
        "def f(g): f(g | g); f(.)",
        "repeat(1)",
        "[repeat(1)]",
        "repeat(.) | empty",
        "[limit(1e9; repeat(1))]",
        "until(false; .)",
        "recurse(.)| empty",
        "reduce range(1e9) as $i (0; . + 1)",
        "reduce range(60) as $i (\"x\"; . + .)",
        "reduce range(60) as $i (1; [., .])",
        "reduce range(100000) as $i (0; [.])",
        "\"x\" * 1e12",
        "\"x\" * 1000000 * 1000000",
        "[range(1000)] as $a | $a[] as $x | $a[] as $y | $a[] as $z | empty",
        "[range(30000)] as $a | $a | contains($a)",
    ] {
        let error = JqQuery::parse(query).unwrap().outcome(&Json::Null).unwrap_err();
        assert!(matches!(error, QueryError::Limit(_) | QueryError::SeveralResults), "{query}: {error}");
    }
}

#[test]
fn exponential_commas_exceed_the_step_limit() {
    let query = format!("{}empty", "(., .) | ".repeat(40));
    assert_eq!(JqQuery::parse(&query).unwrap().outcome(&Json::Null), Err(QueryError::Limit(Limit::Steps)));
}

#[test]
fn infinite_generator_ends_with_its_consumer() {
    for query in
        ["first(repeat(true))", "any(repeat(1); . == 1)", "label $out | repeat(true) | ., break $out"]
    {
        assert_eq!(JqQuery::parse(query).unwrap().outcome(&Json::Null), Ok(QueryOutcome::True), "{query}");
    }
}

#[test]
fn rejects_functions_that_access_the_environment() {
    for query in [
        "input",
        "inputs",
        "env",
        "env.PATH",
        "$ENV",
        "now",
        "$__loc__",
        "debug",
        "halt",
        "import \"a\" as a; 1",
        "include \"a\"; 1",
    ] {
        assert!(matches!(JqQuery::parse(query), Err(QueryError::Syntax(_))), "{query}");
    }
}

#[test]
fn rejects_deeply_nested_text() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("-", ""), ("try ", ""), (".|", "."), ("1+", "1"), (". as $x | ", ".")]
    {
        let count = MAX_QUERY / (open.len() + close.len()) - 1;
        let query = format!("{}1{}", open.repeat(count), close.repeat(count));
        assert!(JqQuery::parse(&query).is_err(), "{open}");
    }
    assert_eq!(JqQuery::parse(&" ".repeat(MAX_QUERY + 1)).unwrap_err(), QueryError::Length(MAX_QUERY + 1));
}

#[test]
fn rejects_expression_before_as_without_parentheses() {
    assert!(JqQuery::parse("1 + . as $x | $x").is_err());
    assert!(JqQuery::parse("\"\\(1 + . as $x | $x)\"").is_err());
    assert_eq!(results("(1 + .) as $x | $x", &json!(2)), "3");
    assert_eq!(results("1 + (. as $x | $x)", &json!(2)), "3");
    assert_eq!(results("1 + 1 | . as $x | reduce (1, 2) as $y ($x; . + $y)", &Json::Null), "5");
}

#[test]
fn deeply_nested_input_is_an_error() {
    let input = (0..1000).fold(Json::Null, |input, _| json!([input]));
    assert_eq!(JqQuery::parse("true").unwrap().outcome(&input), Err(QueryError::Limit(Limit::Size)));
}

#[test]
fn errors_are_short_texts() {
    let error = JqQuery::parse("error(\"x\" * 10000)").unwrap().outcome(&Json::Null).unwrap_err();
    assert_eq!(error.to_string().len(), "query failed: ".len() + 203);
    let error = JqQuery::parse(".a").unwrap().outcome(&json!("x")).unwrap_err();
    assert_eq!(error.to_string(), "query failed: expected an object but got: string (\"x\")");
    assert_eq!(
        JqQuery::parse(".cpu.count >").unwrap_err().to_string(),
        "unexpected end of the query, expected term"
    );
    assert_eq!(JqQuery::parse("nofunction").unwrap_err().to_string(), "function not defined: nofunction/0");
}

const PIECES: [&str; 40] = [
    ".",
    ".a",
    "..",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "|",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "//",
    "==",
    "<",
    "and",
    "or",
    "not",
    "as",
    "$x",
    "def f:",
    "f",
    ";",
    "reduce",
    "try",
    "catch",
    "if",
    "then",
    "else",
    "end",
    "label $x|",
    "break $x",
    "\"a\\(",
    "1e300",
    "?",
    "range(9)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_text_is_a_query_or_an_error(text in "\\PC{0,60}") {
        _ = results(&text, &json!({"a": [1, "x", null]}));
    }

    #[test]
    fn arbitrary_tokens_are_a_query_or_an_error(pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..20)) {
        _ = results(&pieces.join(" "), &json!({"a": [1, "x", null]}));
    }

    #[test]
    fn identity_query_keeps_json_unchanged(number in any::<i64>(), text in "\\PC{0,20}") {
        let input = json!({"text": text, "numbers": [number, true, null]});
        let output: Json = serde_json::from_str(&results(".", &input)).unwrap();
        prop_assert_eq!(output, input);
    }
}
