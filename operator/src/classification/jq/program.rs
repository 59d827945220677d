//! Parsed queries: a syntax tree in which all names are resolved.

use jaq_core::load::lex::{Lexer, StrPart, Tok, Token};
use jaq_core::load::parse::{BinaryOp, Def, Parser, Pattern as SourcePattern, Term};
use jaq_core::ops::{Cmp, Math};
use jaq_core::path::{Opt, Part as SourcePart};

use super::error::{QueryError, query_error};
use super::functions::{self, Function};
use super::value::{Limit, Value};

/// Definitions available to every query.
const PRELUDE: &str = include_str!("prelude.jq");

/// Maximum nesting of the syntax tree. The functions that create, drop and walk the tree are recursive.
const MAX_NESTING: u32 = 500;

/// Maximum number of tokens. The parser of `jaq-core` may recurse once per token.
const MAX_TOKENS: usize = 2000;

/// Functions of jq that read anything other than the input of the query. They do not exist here.
const REFUSED: [&str; 20] = [
    "$ENV",
    "debug",
    "env",
    "get_search_list",
    "gmtime",
    "halt",
    "halt_error",
    "input",
    "input_filename",
    "input_line_number",
    "inputs",
    "localtime",
    "mktime",
    "modulemeta",
    "now",
    "stderr",
    "strflocaltime",
    "strftime",
    "strptime",
    "todate",
];

#[derive(Debug)]
pub(super) struct Program {
    pub(super) main: Node,
}

/// A node of the syntax tree. Binding numbers count outwards from the innermost binding.
#[derive(Debug)]
pub(super) enum Node {
    Identity,
    Literal(Value),
    Text { json: bool, parts: Vec<Self> },
    Array(Box<Self>),
    Object(Vec<(Self, Self)>),
    Negate(Box<Self>),
    Pipe(Box<Self>, Box<Self>),
    Bind(Box<Self>, Pattern, Box<Self>),
    Comma(Box<Self>, Box<Self>),
    Alternative(Box<Self>, Box<Self>),
    Logic { or: bool, left: Box<Self>, right: Box<Self> },
    Math(Math, Box<Self>, Box<Self>),
    Compare(Cmp, Box<Self>, Box<Self>),
    Label(Box<Self>),
    Break(usize),
    Fold(Box<Fold>),
    Try(Box<Self>, Option<Box<Self>>),
    If { condition: Box<Self>, then: Box<Self>, otherwise: Box<Self> },
    Define(Box<Definition>, Box<Self>),
    Call { binding: usize, arguments: Vec<Self> },
    Variable(usize),
    Path { head: Box<Self>, part: Access, optional: bool },
    Range(Box<[Self; 3]>),
    Function(Function, Vec<Self>),
}

/// A step of a path, which accesses a part of a value. Keys and bounds are evaluated on the input of the whole path.
#[derive(Debug)]
pub(super) enum Access {
    Index(Box<Node>),
    Slice(Option<Box<Node>>, Option<Box<Node>>),
    Iterate,
}

#[derive(Debug)]
pub(super) struct Fold {
    pub(super) source: Node,
    pub(super) pattern: Pattern,
    pub(super) init: Node,
    pub(super) update: Node,
    /// The expression that `foreach` evaluates for each state. `None` for `reduce`, which returns the last state.
    pub(super) extract: Option<Node>,
}

#[derive(Debug)]
pub(super) enum Pattern {
    Variable,
    Array(Vec<Self>),
    Object(Vec<(Node, Self)>),
}

#[derive(Debug)]
pub(super) struct Definition {
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    Filter,
    Value,
}

impl Program {
    pub(super) fn parse(text: &str) -> Result<Self, QueryError> {
        check_brackets(text)?;
        let tokens = Lexer::new(text).lex().map_err(|errors| {
            syntax(
                errors.first().map_or_else(String::new, |(expected, at)| unexpected(expected.as_str(), at)),
            )
        })?;
        if count(&tokens) > MAX_TOKENS {
            return Err(QueryError::Limit(Limit::Nesting));
        }
        check_bindings(&tokens)?;
        let term = Parser::new(&tokens).parse(Parser::term).map_err(|errors| {
            syntax(errors.first().map_or_else(String::new, |(expected, token)| {
                unexpected(expected.as_str(), token.map_or("", |token| token.as_str()))
            }))
        })?;
        let prelude = Lexer::new(PRELUDE).lex().map_err(|_| syntax("the prelude is invalid".to_owned()))?;
        let prelude = Parser::new(&prelude)
            .parse(Parser::defs)
            .map_err(|_| syntax("the prelude is invalid".to_owned()))?;
        Ok(Self { main: Resolver::default().definitions(&prelude, &term)? })
    }
}

fn syntax(text: String) -> QueryError {
    QueryError::Syntax(text)
}

fn unexpected(expected: &str, at: &str) -> String {
    let at: String = at.chars().take(20).collect();
    if at.is_empty() {
        format!("unexpected end of the query, expected {expected}")
    } else {
        format!("unexpected {at:?}, expected {expected}")
    }
}

/// Rejects a text whose brackets are nested too deeply for the recursive lexer.
fn check_brackets(text: &str) -> Result<(), QueryError> {
    let mut nesting = 0u32;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => nesting += 1,
            b')' | b']' | b'}' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > MAX_NESTING {
            return Err(QueryError::Limit(Limit::Nesting));
        }
    }
    Ok(())
}

fn count(tokens: &[Token<&str>]) -> usize {
    let inner = |Token(_, token): &Token<&str>| match token {
        Tok::Block(inner) => count(inner),
        Tok::Str(parts) => parts
            .iter()
            .map(|part| if let StrPart::Term(token) = part { count(std::slice::from_ref(token)) } else { 1 })
            .sum(),
        _ => 0,
    };
    tokens.iter().map(|token| 1 + inner(token)).sum()
}

/// Rejects `a + b as $x | ...`.
///
/// gojq binds `b` here, but the parser binds `a + b`, and the syntax tree does not show which was meant.
fn check_bindings(tokens: &[Token<&str>]) -> Result<(), QueryError> {
    let mut operator = false;
    for Token(text, token) in tokens {
        match token {
            Tok::Block(inner) => check_bindings(inner)?,
            Tok::Str(parts) => {
                for part in parts {
                    if let StrPart::Term(token) = part {
                        check_bindings(std::slice::from_ref(token))?;
                    }
                }
            }
            Tok::Word if matches!(*text, "and" | "or") => operator = true,
            Tok::Word if *text == "as" && operator => {
                return Err(syntax("the expression before \"as\" needs parentheses".to_owned()));
            }
            Tok::Word if matches!(*text, "then" | "else" | "elif" | "if" | "reduce" | "foreach") => {
                operator = false
            }
            Tok::Sym if matches!(*text, "|" | ";" | ":") => operator = false,
            Tok::Sym if *text == "," || text.starts_with(|c| "=!<>+-*/%".contains(c)) || *text == "|=" => {
                operator = true
            }
            _ => {}
        }
    }
    Ok(())
}

#[derive(Debug)]
enum Name<'t> {
    /// A variable, including the leading `$`.
    Variable(&'t str),
    /// A parameter `$x`, including the leading `$`. It can also be called as `x`.
    Parameter(&'t str),
    Label(&'t str),
    Filter(&'t str),
    Definition(&'t str, usize),
}

/// A resolver that replaces names with binding numbers.
#[derive(Default)]
struct Resolver<'t> {
    scope: Vec<Name<'t>>,
    nesting: u32,
}

type Source<'t> = Term<&'t str>;

impl<'t> Resolver<'t> {
    /// Runs `work` with a new scope. Names added by `work` are removed afterwards.
    fn scoped<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let len = self.scope.len();
        let result = work(self);
        self.scope.truncate(len);
        result
    }

    fn boxed(&mut self, term: &Source<'t>) -> Result<Box<Node>, QueryError> {
        self.term(term).map(Box::new)
    }

    fn term(&mut self, term: &Source<'t>) -> Result<Node, QueryError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(QueryError::Limit(Limit::Nesting));
        }
        let node = self.nested_term(term);
        self.nesting -= 1;
        node
    }

    fn nested_term(&mut self, term: &Source<'t>) -> Result<Node, QueryError> {
        Ok(match term {
            Term::Id => Node::Identity,
            Term::Recurse => self.call("recurse", &[])?,
            Term::Num(text) => Node::Literal(
                functions::number_from_text(text).ok_or_else(|| syntax(unexpected("number", text)))?,
            ),
            Term::Str(format, parts) => self.text(*format, parts)?,
            Term::Arr(None) => Node::Literal(Value::array(Vec::new()).map_err(query_error)?),
            Term::Arr(Some(items)) => Node::Array(self.boxed(items)?),
            Term::Obj(members) => {
                Node::Object(members.iter().map(|member| self.member(member)).collect::<Result<_, _>>()?)
            }
            Term::Neg(operand) => Node::Negate(self.boxed(operand)?),
            Term::BinOp(left, operator, right) => self.binary(left, operator, right)?,
            Term::Label(name, body) => self.scoped(|scope| {
                scope.scope.push(Name::Label(name));
                scope.boxed(body).map(Node::Label)
            })?,
            Term::Break(name) => Node::Break(self.label(name)?),
            Term::Fold(kind, source, pattern, arguments) => self.fold(kind, source, pattern, arguments)?,
            Term::TryCatch(body, handler) => {
                let handler = handler.as_deref().map(|handler| self.boxed(handler)).transpose()?;
                Node::Try(self.boxed(body)?, handler)
            }
            Term::IfThenElse(branches, otherwise) => self.branches(branches, otherwise.as_deref())?,
            Term::Def(definitions, body) => self.definitions(definitions, body)?,
            Term::Call(name, arguments) => self.call(name, arguments)?,
            Term::Var(name) => self.variable(name)?,
            Term::Path(head, path) => {
                let mut node = self.term(head)?;
                for (part, optional) in &path.0 {
                    let part = self.path_part(part)?;
                    node = Node::Path {
                        head: Box::new(node),
                        part,
                        optional: matches!(optional, Opt::Optional),
                    };
                }
                node
            }
        })
    }

    fn text(
        &mut self,
        format: Option<&str>,
        parts: &[StrPart<&'t str, Source<'t>>],
    ) -> Result<Node, QueryError> {
        let json = match format {
            None | Some("@text") => false,
            Some("@json") => true,
            Some(format) => return Err(unsupported(format)),
        };
        let literal = |text: String| Value::text(text).map(Node::Literal).map_err(query_error);
        let mut nodes = Vec::new();
        let mut text = String::new();
        for part in parts {
            match part {
                StrPart::Str(part) => text.push_str(part),
                StrPart::Char(c) => text.push(*c),
                StrPart::Term(term) => {
                    nodes.push(literal(std::mem::take(&mut text))?);
                    nodes.push(self.term(term)?);
                }
            }
        }
        if nodes.is_empty() {
            return literal(text);
        }
        nodes.push(literal(text)?);
        Ok(Node::Text { json, parts: nodes })
    }

    fn member(
        &mut self,
        (key, value): &(Source<'t>, Option<Source<'t>>),
    ) -> Result<(Node, Node), QueryError> {
        let value = match (key, value) {
            (_, Some(value)) => self.term(value)?,
            (Term::Var(_), None) => self.term(key)?,
            (_, None) => {
                let part = Access::Index(self.boxed(key)?);
                Node::Path { head: Box::new(Node::Identity), part, optional: false }
            }
        };
        let key = match key {
            Term::Var(name) => Node::Literal(Value::Text(name.trim_start_matches('$').into())),
            key => self.term(key)?,
        };
        Ok((key, value))
    }

    fn binary(
        &mut self,
        left: &Source<'t>,
        operator: &BinaryOp<&'t str>,
        right: &Source<'t>,
    ) -> Result<Node, QueryError> {
        if let BinaryOp::Pipe(Some(pattern)) = operator {
            let source = self.boxed(left)?;
            return self.scoped(|scope| {
                let pattern = scope.pattern(pattern)?;
                Ok(Node::Bind(source, pattern, scope.boxed(right)?))
            });
        }
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        Ok(match operator {
            BinaryOp::Pipe(_) => Node::Pipe(left, right),
            BinaryOp::Comma => Node::Comma(left, right),
            BinaryOp::Alt => Node::Alternative(left, right),
            BinaryOp::Or => Node::Logic { or: true, left, right },
            BinaryOp::And => Node::Logic { or: false, left, right },
            BinaryOp::Math(operator) => Node::Math(*operator, left, right),
            BinaryOp::Cmp(operator) => Node::Compare(*operator, left, right),
            BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateMath(_) | BinaryOp::UpdateAlt => {
                return Err(unsupported("assignment"));
            }
        })
    }

    fn pattern(&mut self, pattern: &SourcePattern<&'t str>) -> Result<Pattern, QueryError> {
        Ok(match pattern {
            SourcePattern::Var(name) => {
                self.scope.push(Name::Variable(name));
                Pattern::Variable
            }
            SourcePattern::Arr(items) => {
                Pattern::Array(items.iter().map(|item| self.pattern(item)).collect::<Result<_, _>>()?)
            }
            SourcePattern::Obj(members) => {
                let members =
                    members.iter().map(|(key, member)| Ok((self.term(key)?, self.pattern(member)?)));
                Pattern::Object(members.collect::<Result<_, QueryError>>()?)
            }
        })
    }

    fn fold(
        &mut self,
        kind: &str,
        source: &Source<'t>,
        pattern: &SourcePattern<&'t str>,
        arguments: &[Source<'t>],
    ) -> Result<Node, QueryError> {
        let (init, update, extract) = match (kind, arguments) {
            ("reduce", [init, update]) => (init, update, None),
            ("foreach", [init, update]) => (init, update, Some(&Term::Id)),
            ("foreach", [init, update, extract]) => (init, update, Some(extract)),
            _ => return Err(syntax(format!("{kind} has {} arguments", arguments.len()))),
        };
        let (source, init) = (self.term(source)?, self.term(init)?);
        self.scoped(|scope| {
            let pattern = scope.pattern(pattern)?;
            let update = scope.term(update)?;
            let extract = extract.map(|extract| scope.term(extract)).transpose()?;
            Ok(Node::Fold(Box::new(Fold { source, pattern, init, update, extract })))
        })
    }

    fn branches(
        &mut self,
        branches: &[(Source<'t>, Source<'t>)],
        otherwise: Option<&Source<'t>>,
    ) -> Result<Node, QueryError> {
        let mut node = otherwise.map_or(Ok(Node::Identity), |otherwise| self.term(otherwise))?;
        for (condition, then) in branches.iter().rev() {
            node = Node::If {
                condition: self.boxed(condition)?,
                then: self.boxed(then)?,
                otherwise: Box::new(node),
            };
        }
        Ok(node)
    }

    fn definitions(&mut self, definitions: &[Def<&'t str>], body: &Source<'t>) -> Result<Node, QueryError> {
        self.scoped(|scope| {
            let mut resolved = Vec::new();
            for definition in definitions {
                resolved.push(scope.definition(definition)?);
            }
            let body = scope.term(body)?;
            Ok(resolved
                .into_iter()
                .rev()
                .fold(body, |body, definition| Node::Define(Box::new(definition), Box::new(body))))
        })
    }

    fn definition(&mut self, definition: &Def<&'t str>) -> Result<Definition, QueryError> {
        self.scope.push(Name::Definition(definition.name, definition.args.len()));
        self.scoped(|scope| {
            let mut parameters = Vec::new();
            for name in &definition.args {
                let value = name.starts_with('$');
                scope.scope.push(if value { Name::Parameter(name) } else { Name::Filter(name) });
                parameters.push(if value { Parameter::Value } else { Parameter::Filter });
            }
            Ok(Definition { parameters, body: scope.term(&definition.body)? })
        })
    }

    /// Returns the number of the innermost binding for which `matches` is true.
    fn binding(&self, matches: impl Fn(&Name<'t>) -> bool) -> Option<usize> {
        self.scope.iter().rev().position(matches)
    }

    fn variable(&self, name: &str) -> Result<Node, QueryError> {
        match self.binding(
            |bound| matches!(bound, Name::Variable(bound) | Name::Parameter(bound) if *bound == name),
        ) {
            Some(binding) => Ok(Node::Variable(binding)),
            None if REFUSED.contains(&name) => Err(unsupported(name)),
            None => Err(syntax(format!("variable not defined: {name}"))),
        }
    }

    fn label(&self, name: &str) -> Result<usize, QueryError> {
        let label = self.binding(|bound| matches!(bound, Name::Label(bound) if *bound == name));
        label.ok_or_else(|| syntax(format!("label not defined: {name}")))
    }

    fn call(&mut self, name: &'t str, arguments: &[Source<'t>]) -> Result<Node, QueryError> {
        let count = arguments.len();
        let binding = self.binding(|bound| match bound {
            Name::Definition(bound, parameters) => *bound == name && *parameters == count,
            Name::Filter(bound) => *bound == name && count == 0,
            Name::Parameter(bound) => count == 0 && bound.strip_prefix('$') == Some(name),
            Name::Variable(_) | Name::Label(_) => false,
        });
        let nodes = arguments.iter().map(|argument| self.term(argument)).collect::<Result<Vec<_>, _>>()?;
        if let Some(binding) = binding {
            let variable =
                self.scope.iter().rev().nth(binding).is_some_and(|bound| matches!(bound, Name::Parameter(_)));
            return Ok(if variable {
                Node::Variable(binding)
            } else {
                Node::Call { binding, arguments: nodes }
            });
        }
        if let Some(function) = functions::function(name, count) {
            return Ok(Node::Function(function, nodes));
        }
        match (name, count) {
            ("null", 0) => Ok(Node::Literal(Value::Null)),
            ("true", 0) => Ok(Node::Literal(Value::Bool(true))),
            ("false", 0) => Ok(Node::Literal(Value::Bool(false))),
            ("_range", 3) => {
                let range: Option<[Node; 3]> = nodes.try_into().ok();
                range.map(|range| Node::Range(Box::new(range))).ok_or_else(|| syntax("range".to_owned()))
            }
            _ if REFUSED.contains(&name) => Err(unsupported(name)),
            _ => Err(syntax(format!("function not defined: {name}/{count}"))),
        }
    }

    fn path_part(&mut self, part: &SourcePart<Source<'t>>) -> Result<Access, QueryError> {
        let mut bound =
            |bound: &Option<Source<'t>>| bound.as_ref().map(|bound| self.boxed(bound)).transpose();
        Ok(match part {
            SourcePart::Index(key) => Access::Index(self.boxed(key)?),
            SourcePart::Range(None, None) => Access::Iterate,
            SourcePart::Range(from, to) => Access::Slice(bound(from)?, bound(to)?),
        })
    }
}

fn unsupported(what: &str) -> QueryError {
    syntax(format!("{what} is not supported in a query"))
}
