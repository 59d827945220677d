def empty: label $out | break $out;
def error: error(.);
def not: if . then false else true end;
def select(f): if f then . else empty end;
def map(f): [.[] | f];
def values: select(. != null);
def nulls: select(. == null);
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def strings: select(type == "string");
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type | . == "array" or . == "object");
def scalars: select(type | . != "array" and . != "object");
def range($end): _range(0; $end; 1);
def range($from; $to): _range($from; $to; 1);
def range($from; $to; $by): _range($from; $to; $by);
def recurse(f): def r: ., (f | r); r;
def recurse: recurse(.[]?);
def recurse(f; cond): def r: ., (f | select(cond) | r); r;
def repeat(f): def r: f, r; r;
def while(cond; update): def r: if cond then ., (update | r) else empty end; r;
def until(cond; update): def r: if cond then . else update | r end; r;
def first(f): label $out | (f | ., break $out);
def isempty(f): first((f | false), true);
def limit($n; f):
  if $n > 0 then label $out | foreach f as $item (0; . + 1; $item, if . >= $n then break $out else empty end)
  elif $n == 0 then empty
  else error("limit doesn't support negative count") end;
def skip($n; f):
  if $n > 0 then foreach f as $item ($n; . - 1; if . < 0 then $item else empty end)
  elif $n == 0 then f
  else error("skip doesn't support negative count") end;
def last(f): reduce f as $item (null; $item);
def nth($n; f): if $n < 0 then error("nth doesn't support negative index") else first(skip($n; f)) end;
def first: .[0];
def last: .[-1];
def nth($n): .[$n];
def any(f; cond): isempty(first(f | cond or empty)) | not;
def any(cond): any(.[]; cond);
def any: any(.);
def all(f; cond): isempty(first(f | cond and empty));
def all(cond): isempty(first(.[] | cond and empty));
def all: all(.);
def add(f): reduce f as $item (null; . + $item);
def add: add(.[]);
def in(object): . as $key | object | has($key);
def inside(whole): . as $part | whole | contains($part);
def IN(source): any(source == .; .);
def IN(stream; source): any(stream == source; .);
def to_entries: if type == "array" then [range(length) as $key | {key: $key, value: .[$key]}]
  else [keys[] as $key | {key: $key, value: .[$key]}] end;
def from_entries: reduce .[] as $entry ({};
  . + {($entry | if .key == null then .k // .name // .Name // .K // .Key
      | if . == null then "null" else . end else .key end
      | if type == "string" then . else tojson end):
    ($entry | if has("value") then .value elif has("v") then .v else .Value end)});
def with_entries(f): to_entries | map(f) | from_entries;
def map_values(f): if type == "array" then [.[] | first(f)]
  else . as $object | [keys[] as $key | {key: $key, value: ($object[$key] | first(f))}] | from_entries end;
def walk(f): def w: if type == "object" then map_values(w) elif type == "array" then map(w) else . end | f; w;
def sort_by(f): _sort_by(map([f]));
def group_by(f): _group_by(map([f]));
def unique_by(f): [group_by(f)[] | .[0]];
def unique: unique_by(.);
def min_by(f): sort_by(f) | .[0];
def max_by(f): sort_by(f) | .[-1];
def min: sort | .[0];
def max: sort | .[-1];
def index($part): indices($part) | .[0];
def rindex($part): indices($part) | .[-1];
def flatten: flatten(1000000);
def getpath($path): reduce $path[] as $key (.; if . == null then null else .[$key] end);
def transpose: [range([.[] | length] | max // 0) as $i | [.[][$i]]];
def combinations: if length == 0 then [] else .[0][] as $item | (.[1:] | combinations) as $rest | [$item] + $rest end;
def paths: def p: if type == "object" or type == "array" then
    (to_entries[] | .key as $key | [$key], (.value | p | [$key] + .)) else empty end; p;
def paths(cond): . as $whole | paths | select(. as $path | $whole | getpath($path) | cond);
def test($expression): _test($expression; null);
def test($expression; $flags): _test($expression; $flags);
def match($expression): _match($expression; null)[];
def match($expression; $flags): _match($expression; $flags)[];
def capture($expression; $flags): match($expression; $flags)
  | [.captures[] | select(.name != null) | {key: .name, value: .string}] | from_entries;
def capture($expression): capture($expression; null);
def scan($expression; $flags): match($expression; "g" + $flags)
  | if .captures == [] then .string else [.captures[].string] end;
def scan($expression): scan($expression; null);
def _pieces($text; $matches): foreach ($matches[], null) as $match ({end: 0};
    {end: ($match | if . == null then 0 else .offset + .length end), piece: $text[.end:($match | .offset)]}; .piece);
def splits($expression; $flags): _pieces(.; [match($expression; "g" + $flags)]);
def splits($expression): splits($expression; null);
def split($expression; $flags): [splits($expression; $flags)];
def sub($expression; f; $flags): . as $text
  | [foreach (match($expression; $flags), null) as $match ({end: 0};
      {end: ($match | if . == null then 0 else .offset + .length end), match: $match, piece: $text[.end:($match | .offset)]};
      .piece, (.match | select(. != null)
        | [.captures[] | select(.name != null) | {key: .name, value: .string}] | from_entries | f))]
  | add;
def sub($expression; f): sub($expression; f; null);
def gsub($expression; f; $flags): sub($expression; f; "g" + $flags);
def gsub($expression; f): sub($expression; f; "g");
