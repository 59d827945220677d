//! The evaluator of parsed queries.
//!
//! Each operator passes its results to a consumer, one at a time. A consumer that needs no more results ends the
//! evaluation with [`Stop::Consumer`] or a break. So `first(repeat(1))` terminates.

use std::collections::BTreeMap;
use std::rc::Rc;

use jaq_core::ops::Cmp;

use super::arguments::{described, number};
use super::budget::Budget;
use super::program::{Access, Definition, Fold, Node, Parameter, Pattern, Program};
use super::value::{Limit, Stop, Value};
use super::{arithmetic, functions};

/// Maximum nesting of operators and their consumers. The stack is large enough for this nesting.
const MAX_NESTING: u32 = 8000;

type Flow = Result<(), Stop>;

/// A function that receives each result of an operator.
pub(super) type Consumer<'c> = &'c mut dyn FnMut(&mut Evaluator, Value) -> Flow;

/// The state of one evaluation.
#[derive(Default)]
pub(super) struct Evaluator {
    budget: Budget,
    nesting: u32,
    labels: u64,
}

/// The bindings of names in a scope, the innermost first.
#[derive(Clone, Default)]
struct Scope<'p>(Option<Rc<Frame<'p>>>);

struct Frame<'p> {
    binding: Binding<'p>,
    outer: Scope<'p>,
}

enum Binding<'p> {
    Value(Value),
    /// A filter argument, which is evaluated with the bindings of the caller.
    Filter(&'p Node, Scope<'p>),
    Definition(&'p Definition),
    Label(u64),
}

impl<'p> Scope<'p> {
    fn with(&self, binding: Binding<'p>) -> Self {
        Self(Some(Rc::new(Frame { binding, outer: self.clone() })))
    }

    /// Returns the scope that begins with binding number `binding`.
    fn from(&self, binding: usize) -> Result<&Self, Stop> {
        let mut scope = self;
        for _ in 0..binding {
            scope = &scope.frame()?.outer;
        }
        Ok(scope)
    }

    fn frame(&self) -> Result<&Frame<'p>, Stop> {
        self.0.as_deref().ok_or_else(|| Stop::error("unresolved name"))
    }
}

impl Evaluator {
    pub(super) fn run(&mut self, program: &Program, input: Value, out: Consumer<'_>) -> Flow {
        self.eval(&program.main, &Scope::default(), input, out)
    }

    fn spend(&mut self, steps: u64) -> Flow {
        self.budget.spend(steps)
    }

    fn eval<'p>(&mut self, node: &'p Node, scope: &Scope<'p>, input: Value, out: Consumer<'_>) -> Flow {
        self.spend(1)?;
        if self.nesting >= MAX_NESTING {
            return Err(Stop::Limit(Limit::Nesting));
        }
        self.nesting += 1;
        let flow = self.dispatch(node, scope, input, out);
        self.nesting -= 1;
        flow
    }

    fn dispatch<'p>(&mut self, node: &'p Node, scope: &Scope<'p>, input: Value, out: Consumer<'_>) -> Flow {
        match node {
            Node::Identity => out(self, input),
            Node::Literal(value) => out(self, value.clone()),
            Node::Text { json, parts } => self.text((*json, parts), scope, (&input, String::new()), out),
            Node::Array(items) => self.array(items, scope, input, out),
            Node::Object(members) => self.members(members, scope, (&input, BTreeMap::new()), out),
            Node::Negate(operand) => {
                self.eval(operand, scope, input, &mut |e, value| out(e, arithmetic::negate(&value)?))
            }
            Node::Pipe(left, right) => {
                self.eval(left, scope, input, &mut |e, value| e.eval(right, scope, value, out))
            }
            Node::Bind(source, pattern, body) => self.eval(source, scope, input.clone(), &mut |e, value| {
                e.bind(&[(pattern, value)], scope, &input, &mut |e, scope| {
                    e.eval(body, scope, input.clone(), out)
                })
            }),
            Node::Comma(left, right) => {
                self.eval(left, scope, input.clone(), out)?;
                self.eval(right, scope, input, out)
            }
            Node::Alternative(left, right) => self.alternative((left, right), scope, input, out),
            Node::Logic { or, left, right } => self.eval(left, scope, input.clone(), &mut |e, left| {
                if left.is_true() == *or {
                    return out(e, Value::Bool(*or));
                }
                e.eval(right, scope, input.clone(), &mut |e, right| out(e, Value::Bool(right.is_true())))
            }),
            Node::Math(operator, left, right) => {
                self.pair((left, right), scope, input, &mut |e, left, right| {
                    let value = arithmetic::calculate(&mut e.budget, *operator, &left, &right)?;
                    out(e, value)
                })
            }
            Node::Compare(operator, left, right) => {
                self.pair((left, right), scope, input, &mut |e, left, right| {
                    e.spend(left.weight().min(right.weight()))?;
                    out(e, Value::Bool(compare(*operator, &left, &right)))
                })
            }
            Node::Label(body) => self.label(body, scope, input, out),
            Node::Break(binding) => match scope.from(*binding)?.frame()?.binding {
                Binding::Label(label) => Err(Stop::Break(label)),
                _ => Err(Stop::error("unresolved label")),
            },
            Node::Fold(fold) => self.fold(fold, scope, input, out),
            Node::Try(body, handler) => self.attempt((body, handler.as_deref()), scope, input, out),
            Node::If { condition, then, otherwise } => {
                self.eval(condition, scope, input.clone(), &mut |e, value| {
                    e.eval(if value.is_true() { then } else { otherwise }, scope, input.clone(), out)
                })
            }
            Node::Define(definition, body) => {
                self.eval(body, &scope.with(Binding::Definition(definition)), input, out)
            }
            Node::Call { binding, arguments } => self.call((*binding, arguments), scope, input, out),
            Node::Variable(binding) => match &scope.from(*binding)?.frame()?.binding {
                Binding::Value(value) => out(self, value.clone()),
                _ => Err(Stop::error("unresolved variable")),
            },
            Node::Path { head, part, optional } => self.path((head, part, *optional), scope, input, out),
            Node::Range(bounds) => self.range(bounds, scope, &input, out),
            Node::Function(function, arguments) => {
                self.function((*function, arguments), scope, (&input, Vec::new()), out)
            }
        }
    }

    fn text<'p>(
        &mut self,
        (json, parts): (bool, &'p [Node]),
        scope: &Scope<'p>,
        (input, text): (&Value, String),
        out: Consumer<'_>,
    ) -> Flow {
        let Some((part, rest)) = parts.split_first() else {
            return out(self, Value::text(text)?);
        };
        self.eval(part, scope, input.clone(), &mut |e, value| {
            e.spend(value.weight())?;
            let part = match (&value, json && !matches!(part, Node::Literal(_))) {
                (Value::Text(text), false) => text.to_string(),
                (value, _) => value.to_json(),
            };
            let text = format!("{text}{part}");
            super::value::within_weight(super::value::bytes_weight(text.len()))?;
            e.text((json, rest), scope, (input, text), out)
        })
    }

    fn array<'p>(&mut self, items: &'p Node, scope: &Scope<'p>, input: Value, out: Consumer<'_>) -> Flow {
        let mut values = Vec::new();
        let mut weight = 0u64;
        self.eval(items, scope, input, &mut |_, value| {
            weight = super::value::within_weight(weight.saturating_add(value.weight()))?;
            values.push(value);
            Ok(())
        })?;
        self.spend(values.len().try_into().unwrap_or(u64::MAX))?;
        out(self, Value::array(values)?)
    }

    fn members<'p>(
        &mut self,
        members: &'p [(Node, Node)],
        scope: &Scope<'p>,
        (input, object): (&Value, BTreeMap<std::sync::Arc<str>, Value>),
        out: Consumer<'_>,
    ) -> Flow {
        let Some(((key, value), rest)) = members.split_first() else {
            return out(self, Value::object(object)?);
        };
        self.eval(key, scope, input.clone(), &mut |e, key| {
            let Value::Text(key) = key else {
                return Err(Stop::error(format!(
                    "expected a string for object key but got: {}",
                    key.type_name()
                )));
            };
            e.eval(value, scope, input.clone(), &mut |e, value| {
                let mut object = object.clone();
                object.insert(key.clone(), value);
                e.spend(object.len().try_into().unwrap_or(u64::MAX))?;
                e.members(rest, scope, (input, object), out)
            })
        })
    }

    /// Evaluates two operands. The right operand is the outer loop, as in jq.
    fn pair<'p>(
        &mut self,
        (left, right): (&'p Node, &'p Node),
        scope: &Scope<'p>,
        input: Value,
        out: &mut dyn FnMut(&mut Self, Value, Value) -> Flow,
    ) -> Flow {
        self.eval(right, scope, input.clone(), &mut |e, right| {
            e.eval(left, scope, input.clone(), &mut |e, left| out(e, left, right.clone()))
        })
    }

    fn alternative<'p>(
        &mut self,
        (left, right): (&'p Node, &'p Node),
        scope: &Scope<'p>,
        input: Value,
        out: Consumer<'_>,
    ) -> Flow {
        let mut any = false;
        // gojq reports an error of the left operand; jq would suppress it.
        self.eval(left, scope, input.clone(), &mut |e, value| {
            if !value.is_true() {
                return Ok(());
            }
            any = true;
            out(e, value)
        })?;
        if any { Ok(()) } else { self.eval(right, scope, input, out) }
    }

    fn attempt<'p>(
        &mut self,
        (body, handler): (&'p Node, Option<&'p Node>),
        scope: &Scope<'p>,
        input: Value,
        out: Consumer<'_>,
    ) -> Flow {
        let mut downstream = None;
        let flow = self.eval(body, scope, input, &mut |e, value| deliver(e, value, out, &mut downstream));
        if let Some(stop) = downstream {
            return Err(stop);
        }
        match (flow, handler) {
            (Err(Stop::Error(_)), None) => Ok(()),
            (Err(Stop::Error(error)), Some(handler)) => self.eval(handler, scope, error, out),
            (flow, _) => flow,
        }
    }

    fn label<'p>(&mut self, body: &'p Node, scope: &Scope<'p>, input: Value, out: Consumer<'_>) -> Flow {
        self.labels += 1;
        let label = self.labels;
        match self.eval(body, &scope.with(Binding::Label(label)), input, out) {
            Err(Stop::Break(target)) if target == label => Ok(()),
            flow => flow,
        }
    }

    fn fold<'p>(&mut self, fold: &'p Fold, scope: &Scope<'p>, input: Value, out: Consumer<'_>) -> Flow {
        self.eval(&fold.init, scope, input.clone(), &mut |e, init| {
            let mut state = init;
            e.eval(&fold.source, scope, input.clone(), &mut |e, value| {
                e.bind(&[(&fold.pattern, value)], scope, &input, &mut |e, scope| {
                    e.update((fold, &mut state), scope, out)
                })
            })?;
            if fold.extract.is_some() { Ok(()) } else { out(e, std::mem::replace(&mut state, Value::Null)) }
        })
    }

    /// Replaces the state of a fold with each result of its update. Without a result, the state stays unchanged.
    fn update<'p>(
        &mut self,
        (fold, state): (&'p Fold, &mut Value),
        scope: &Scope<'p>,
        out: Consumer<'_>,
    ) -> Flow {
        self.eval(&fold.update, scope, state.clone(), &mut |e, value| {
            *state = value.clone();
            match &fold.extract {
                Some(extract) => e.eval(extract, scope, value, out),
                None => Ok(()),
            }
        })
    }

    /// Binds the variables of patterns to the matching parts of a value.
    fn bind<'p>(
        &mut self,
        patterns: &[(&'p Pattern, Value)],
        scope: &Scope<'p>,
        input: &Value,
        out: &mut dyn FnMut(&mut Self, &Scope<'p>) -> Flow,
    ) -> Flow {
        let Some(((pattern, value), rest)) = patterns.split_first() else {
            return out(self, scope);
        };
        self.spend(1)?;
        match pattern {
            Pattern::Variable => self.bind(rest, &scope.with(Binding::Value(value.clone())), input, out),
            Pattern::Array(items) => {
                let mut patterns = Vec::new();
                for (i, item) in (0i64..).zip(items) {
                    patterns.push((item, functions::index(value, &Value::Int(i))?));
                }
                patterns.extend(rest.iter().cloned());
                self.bind(&patterns, scope, input, out)
            }
            Pattern::Object(members) => self.bind_members((members, value), scope, input, &mut |e, scope| {
                e.bind(rest, scope, input, out)
            }),
        }
    }

    fn bind_members<'p>(
        &mut self,
        (members, value): (&'p [(Node, Pattern)], &Value),
        scope: &Scope<'p>,
        input: &Value,
        out: &mut dyn FnMut(&mut Self, &Scope<'p>) -> Flow,
    ) -> Flow {
        let Some(((key, pattern), rest)) = members.split_first() else {
            return out(self, scope);
        };
        self.eval(key, scope, input.clone(), &mut |e, key| {
            let member = functions::index(value, &key)?;
            e.bind(&[(pattern, member)], scope, input, &mut |e, scope| {
                e.bind_members((rest, value), scope, input, out)
            })
        })
    }

    fn call<'p>(
        &mut self,
        (binding, arguments): (usize, &'p [Node]),
        scope: &Scope<'p>,
        input: Value,
        out: Consumer<'_>,
    ) -> Flow {
        let callee = scope.from(binding)?;
        match &callee.frame()?.binding {
            Binding::Filter(node, scope) => self.eval(node, scope, input, out),
            Binding::Definition(definition) => {
                let parameters: Vec<_> = definition.parameters.iter().copied().zip(arguments).collect();
                let body = &definition.body;
                self.arguments((&parameters, scope), callee, &input, &mut |e, scope| {
                    e.eval(body, scope, input.clone(), out)
                })
            }
            Binding::Value(_) | Binding::Label(_) => Err(Stop::error("unresolved function")),
        }
    }

    /// Binds the arguments of a call. An argument for a parameter `$x` is evaluated, and the call is repeated for each
    /// of its results.
    fn arguments<'p>(
        &mut self,
        (parameters, caller): (&[(Parameter, &'p Node)], &Scope<'p>),
        scope: &Scope<'p>,
        input: &Value,
        out: &mut dyn FnMut(&mut Self, &Scope<'p>) -> Flow,
    ) -> Flow {
        let Some(((parameter, argument), rest)) = parameters.split_first() else {
            return out(self, scope);
        };
        match parameter {
            Parameter::Filter => {
                let scope = scope.with(Binding::Filter(argument, caller.clone()));
                self.arguments((rest, caller), &scope, input, out)
            }
            Parameter::Value => self.eval(argument, caller, input.clone(), &mut |e, value| {
                e.arguments((rest, caller), &scope.with(Binding::Value(value)), input, out)
            }),
        }
    }

    fn path<'p>(
        &mut self,
        (head, part, optional): (&'p Node, &'p Access, bool),
        scope: &Scope<'p>,
        input: Value,
        out: Consumer<'_>,
    ) -> Flow {
        let mut pass = |e: &mut Self, part: Result<Value, Stop>| match part {
            Err(Stop::Error(_)) if optional => Ok(()),
            part => out(e, part?),
        };
        self.eval(head, scope, input.clone(), &mut |e, value| match part {
            Access::Index(key) => e.eval(key, scope, input.clone(), &mut |e, key| {
                e.spend(1)?;
                pass(e, functions::index(&value, &key))
            }),
            Access::Slice(from, to) => e.bound(to.as_deref(), scope, &input, &mut |e, to| {
                e.bound(from.as_deref(), scope, &input, &mut |e, from| {
                    e.spend(value.weight())?;
                    pass(e, functions::slice(&value, &from, &to))
                })
            }),
            Access::Iterate => match &value {
                Value::Array(array) => array.items.iter().try_for_each(|item| pass(e, Ok(item.clone()))),
                Value::Object(object) => {
                    object.members.values().try_for_each(|member| pass(e, Ok(member.clone())))
                }
                value => pass(e, Err(Stop::error(format!("cannot iterate over: {}", described(value))))),
            },
        })
    }

    fn bound<'p>(
        &mut self,
        bound: Option<&'p Node>,
        scope: &Scope<'p>,
        input: &Value,
        out: Consumer<'_>,
    ) -> Flow {
        match bound {
            Some(bound) => self.eval(bound, scope, input.clone(), out),
            None => out(self, Value::Null),
        }
    }

    fn range<'p>(
        &mut self,
        [from, to, by]: &'p [Node; 3],
        scope: &Scope<'p>,
        input: &Value,
        out: Consumer<'_>,
    ) -> Flow {
        self.eval(from, scope, input.clone(), &mut |e, from| {
            e.eval(to, scope, input.clone(), &mut |e, to| {
                e.eval(by, scope, input.clone(), &mut |e, by| e.numbers([&from, &to, &by], out))
            })
        })
    }

    fn numbers(&mut self, [from, to, by]: [&Value; 3], out: Consumer<'_>) -> Flow {
        let (end, step) = (number(to)?, number(by)?);
        let mut next = from.clone();
        loop {
            self.spend(1)?;
            let position = number(&next)?;
            if !(step > 0.0 && position < end || step < 0.0 && position > end) {
                return Ok(());
            }
            out(self, next.clone())?;
            next = arithmetic::add_numbers(&next, by)?;
        }
    }

    /// Calls a function with all combinations of the results of its arguments.
    fn function<'p>(
        &mut self,
        (function, arguments): (functions::Function, &'p [Node]),
        scope: &Scope<'p>,
        (input, values): (&Value, Vec<Value>),
        out: Consumer<'_>,
    ) -> Flow {
        // The last argument is the outer loop, as in jq.
        let Some((argument, rest)) = arguments.split_last() else {
            let value = function.call(&mut self.budget, input, &values)?;
            return out(self, value);
        };
        self.eval(argument, scope, input.clone(), &mut |e, value| {
            let mut values = values.clone();
            values.insert(0, value);
            e.function((function, rest), scope, (input, values), out)
        })
    }
}

/// Passes a value to the consumer. If the consumer stops the evaluation, marks the stop, to distinguish it from an
/// error of the producer.
fn deliver(
    evaluator: &mut Evaluator,
    value: Value,
    out: Consumer<'_>,
    downstream: &mut Option<Stop>,
) -> Flow {
    out(evaluator, value).map_err(|stop| {
        *downstream = Some(stop);
        Stop::Consumer
    })
}

fn compare(operator: Cmp, left: &Value, right: &Value) -> bool {
    let order = left.compare(right);
    match operator {
        Cmp::Lt => order.is_lt(),
        Cmp::Gt => order.is_gt(),
        Cmp::Le => order.is_le(),
        Cmp::Ge => order.is_ge(),
        Cmp::Eq => order.is_eq(),
        Cmp::Ne => order.is_ne(),
    }
}
