"""Reads documents into the models of the client that is generated from the Assisted Service's API document, and writes
them. Prints what a model does not have or changes; each line of the input is a JSON array of a model and a document.

    upstream_models.py < LINES
"""

import json
import sys
import types

from assisted_service_client import ApiClient
from dateutil import parser

# Keys to ignore, by model: the model lacks the key, or its enum lacks values, as for the type of OsImage.
LEFT_OUT = {"OsImage": {"type", "configured"}, "Error": {"findings"}}


def same(sent, found):
    if sent == found:
        return True
    try:
        return parser.isoparse(sent) == parser.isoparse(found)
    except (TypeError, ValueError):
        return False


def differences(sent, found, path):
    """What a model lost or changed. Null is absent."""
    if isinstance(sent, dict) and isinstance(found, dict):
        for key, value in sent.items():
            if value is not None:
                yield from differences(value, found.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(found, list) and len(sent) == len(found):
        for index, (one, other) in enumerate(zip(sent, found)):
            yield from differences(one, other, f"{path}[{index}]")
    elif not same(sent, found):
        yield f"{path}: {sent!r} became {found!r}"


def main():
    client = ApiClient()
    count = 0
    for line in sys.stdin:
        model, document = json.loads(line)
        document = {key: value for key, value in document.items() if key not in LEFT_OUT.get(model, ())} \
            if isinstance(document, dict) else document
        try:
            read = client.deserialize(types.SimpleNamespace(data=json.dumps(document)), model)
        except ValueError as error:
            print(f"{model}: {error}")
            continue
        for difference in differences(document, client.sanitize_for_serialization(read), model):
            print(difference)
        count += 1
    print(f"{count} documents were read", file=sys.stderr)


if __name__ == "__main__":
    main()
