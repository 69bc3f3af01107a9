"""A script with ``main`` as a page: what main does, step by step, with the comments between the steps as prose."""

import ast
import re
import textwrap

# What a page does not show: how options are read.
HIDDEN = re.compile(r"\bparser\b|\boptions\.out\.mkdir|\boptions = ")


def prose(text: str) -> str:
    """Text of a comment or a docstring as reStructuredText; signs of norms and products mean themselves."""
    parts = re.split(r"(``?[^`]+``?)", text)
    parts[::2] = [re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"``{part.strip('`')}``" for part in parts[1::2]]
    return "".join(parts)


def unrolled(source: str) -> str:
    """The code of a script without its docstring; comments set off by a blank line in ``main`` begin a cell.

    A script whose ``main`` returns from its middle stays as it is.
    """
    tree, lines = ast.parse(source), source.splitlines()
    docstring, main = tree.body[0], next(n for n in tree.body if getattr(n, "name", "") == "main")
    last = main.body[-1]
    returns = [node for node in ast.walk(main) if isinstance(node, ast.Return)]
    if [node for node in returns if node is not last and not _within_function(main, node)]:
        return "\n".join(lines[docstring.end_lineno :])
    before = lines[docstring.end_lineno : main.lineno - 1]
    after = [line for line in lines[main.end_lineno :] if line.strip() not in ('if __name__ == "__main__":', "main()")]
    end = last.lineno - 1 if isinstance(last, ast.Return) else main.end_lineno
    body = textwrap.dedent("\n".join(lines[main.lineno : end])).splitlines()
    hidden = [node for node in main.body if HIDDEN.search(ast.get_source_segment(source, node) or "")]
    first = max((node.end_lineno for node in hidden), default=main.lineno) - main.lineno
    ignored = ["# sphinx_gallery_start_ignore", "argv = None", *body[:first], "# sphinx_gallery_end_ignore"]
    text = "\n".join([*before, *after, *ignored, *_cells(body[first:])])
    return re.sub(r"\n{4,}", "\n\n\n", text).strip() + "\n"


def _within_function(main: ast.AST, node: ast.AST) -> bool:
    inner = [n for n in ast.walk(main) if isinstance(n, ast.FunctionDef | ast.Lambda) and n is not main]
    return any(node is child for function in inner for child in ast.walk(function))


def _cells(lines: list[str]) -> list[str]:
    """Comments after a blank line become prose, a paragraph each."""
    found: list[str] = []
    within = False
    for k, line in enumerate(lines):
        opens = line.startswith("# ") and (k == 0 or not lines[k - 1].strip())
        within = opens or (within and line.startswith("# "))
        if opens:
            found += ["# %%", f"# {prose(line[2:])}"]
        elif within:
            found[-1] += f" {prose(line[2:])}"
        else:
            found.append(line)
    return found
