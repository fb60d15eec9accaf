#!/usr/bin/env python3
"""Writes tests/data/templates.json: small templates and what Jinja, set up as transformers does it, makes of them.

    pip install jinja2 transformers
    tests/peers/golden_templates.py > tests/data/templates.json

A template that Jinja refuses has "error" in place of "rendered"; its text is kept where the template raised it itself.
"""
import json
import sys

from jinja2 import TemplateError
from transformers.utils import chat_template_utils

VARIABLES = {
    "messages": [
        {"role": "system", "content": "Be terse."},
        {"role": "user", "content": "  Grüße, O'Neil \"x\" \\ \n2 < 3 & 4  "},
        {"role": "assistant", "content": "ok", "items": 3, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
    ],
    "n": 7, "x": 2.5, "big": 1e22, "small": 1e-7, "yes": True, "nothing": None, "empty": "", "text": "a-b-c-a",
    "numbers": [3, 1, 2, 3], "nested": {"b": [1, {"c": None}], "A": "ü\u2028\n\t", "get": "key"}, "words": ["bee", "Ant", "cat"],
    "unicode": "日本語👩‍👩‍👧é", "bos_token": "<s>",
}

TEMPLATES = [
    # whitespace around tags
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if yes -%}\n  b\n  {%- endif -%}\n c\n", "{{ n }}\n{{ n }}\n\n",
    "x {{- n -}} y", "x\n  {%+ if yes %} b {% endif +%}\nc", "  {# comment #}\nnext", "a {#- c -#} b", "{% raw %}{{ x }}{% endraw %}!",
    "a\n  {% raw -%}  \n {{ y }} {%- endraw %}\nb", "\n\n{% set a = 1 %}\n\n{{ a }}\n", "a\r\nb\rc\n", "{{ 'a\r\nb' }}", "a {% if yes %}  \n b{% endif %}",
    "\t{% if yes %}\n\tb\n\t{% endif %}", "a\u00a0{%- if yes %} b{% endif %}", "{% for i in numbers %}\n{{ i }}\n{% endfor %}\nend", "{{ {'a': {'b': 1}} }}",
    "{{ '}}' }}{{ \"%}\" }}", "  {{ n }}  ", "{%if yes%}1{%endif%}", "a\n\n   {%- if yes %}\n\n b{% endif -%}\n\n ", "{{ '{#' }}", "{{ n", "{% if yes %}",
    # literals and operators
    "{{ 1 + 2 * 3 - 4 / 2 }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 3 ** 2 }} {{ 2 ** -1 }}", "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7 / 2 }}",
    "{{ 1_000 + 0x1f + 0b11 + 0o17 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 3.0 }}", "{{ big }} {{ small }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 123456789.125 }}",
    "{{ 'a' 'b' \"c\" }} {{ 'a\\tb\\n\\x41\\u00e9\\\\\\'' }}", "{{ 'a' ~ 1 ~ none ~ [1, 'x'] }}", "{{ 'ab' * 3 }} {{ [1] * 2 + [2] }} {{ (1, 2) + (3,) }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 == true }}", "{{ not yes }} {{ yes and n }} {{ empty or 'else' }} {{ not n in numbers }}",
    "{{ 3 in numbers }} {{ 9 not in numbers }} {{ 'b' in text }} {{ 'A' in nested }} {{ 'x' in missing }}", "{{ 'a' if yes else 'b' }}{{ 'c' if not yes }}|", "{{ 1 if yes else 2 if n else 3 }}",
    "{{ -n }} {{ +n }} {{ - -n }} {{ -n|abs }} {{ (-n)|abs }}", "{{ [1, 2, 'x', none, true, 1.5, 'it\\'s', \"q\\\"'\"] }}", "{{ {'a': 1, 'b': [2], 3: none} }}", "{{ () }} {{ (1,) }} {{ 1, 2 }}",
    "{{ nested }}", "{{ messages[1] }}", "{{ true }} {{ True }} {{ none }} {{ None }}", "{{ 1 / 0 }}", "{{ 'a' + 1 }}", "{{ none + 'a' }}", "{{ missing + 'a' }}", "{{ 1 < 'a' }}", "{{ 'a' 1 }}",
    # access
    "{{ messages[0].role }} {{ messages[0]['role'] }} {{ messages[-1].content }} {{ messages[0].nope }}|{{ missing }}|", "{{ missing.x }}", "{{ missing['x'] }}", "{{ messages[0].nope.x }}", "{{ nothing.x }}|",
    "{{ messages[9] }}|{{ messages[9].role }}", "{{ messages[2].items is callable }} {{ messages[2]['items'] }}", "{{ nested['get'] }} {{ nested.get('A') }} {{ nested.get('q') }} {{ nested.get('q', 1) }}",
    "{{ text[0] }}{{ text[-1] }}|{{ text[9] }}|{{ unicode[2] }}{{ unicode[-1] }}", "{{ text[1:3] }} {{ text[:-2] }} {{ text[::-1] }} {{ text[::2] }} {{ unicode[1:4] }} {{ unicode[::-1] }}",
    "{{ numbers[1:] }} {{ numbers[:2] }} {{ numbers[::-1] }} {{ numbers[5:] }} {{ numbers[-2:] }} {{ numbers[3:0:-2] }} {{ numbers[-9:9] }}", "{{ numbers[none:2] }} {{ numbers['a':] }}|", "{{ nested[1:] }}|", "{{ messages.0.role }}", "{{ (1, 2)[1] }}",
    "{{ text.nope }}|{{ n.nope }}|", "{{ nested.b[1].c }}", "{{ nested.items() | list }}", "{{ nested.keys() | list }} {{ nested.values() | list | length }}", "{{ text.__class__ }}", "{{ nested.pop('b') }}", "{{ numbers.append(1) }}", "{{ text() }}",
    # statements
    "{% for a in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}", "{% for a in [] %}x{% else %}none{% endfor %}",
    "{% for a in numbers if a > 1 %}{{ a }}{{ loop.index }}{{ loop.last }} {% endfor %}", "{% for k, v in nested.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in nested %}{{ k }}{% endfor %}", "{% for c in 'añb' %}{{ c }}.{% endfor %}",
    "{% for a in numbers %}{% if a == 1 %}{% continue %}{% endif %}{% if loop.index == 4 %}{% break %}{% endif %}{{ a }}{% endfor %}", "{% for a in numbers %}{{ loop.previtem }}<{{ a }}>{{ loop.nextitem }} {% endfor %}",
    "{% for a in numbers %}{% for b in words %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}", "{% for a in numbers %}{% set outer = loop %}{% for b in words %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% set q = 1 %}{% for a in numbers %}{% set q = q + a %}{{ q }} {% endfor %}{{ q }}", "{% for a in numbers %}{{ z }}{% set z = a %}{% endfor %}|{{ z }}", "{% if yes %}{% set q = 5 %}{% endif %}{{ q }}", "{% for a in nothing %}{% endfor %}", "{% for a in missing %}x{% endfor %}|",
    "{% set ns = namespace(a=1, b='x') %}{% for i in numbers %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}", "{% set ns = namespace() %}{% set ns.q = 2 %}{{ ns.q }}", "{% set nested.q = 2 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = numbers %}",
    "{% set q %}a{{ n }}b{% endset %}{{ q }}{{ q | length }}", "{% set q | upper | trim %} a{{ n }}b {% endset %}[{{ q }}]", "{% filter upper %}a{{ n }}b{% endfilter %}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, c=3) }} {{ f('x', 'y', 'z') }} {{ f() }}|{{ f(b=1) }}", "{% macro f(a) %}{{ n }}{{ a }}{{ q }}{% endmacro %}{% set q = 5 %}{{ f(1) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro f(x) %}{% set n = 1 %}{{ n }}{% endmacro %}{{ f(1) }}{{ n }}", "{% for a in numbers %}{% macro f() %}{{ a }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}in{{ n }}{% endcall %}", "{% macro each() %}{% for i in numbers %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) each() %}[{{ i }}]{% endcall %}",
    "{% generation %}a{{ n }}{% endgeneration %}b", "{% for a in numbers %}{% generation %}{% set g = a %}{{ g }}{% endgeneration %}{{ g }}{% endfor %}", "{% if n == 1 %}a{% elif n == 7 %}b{% elif yes %}c{% else %}d{% endif %}", "{% if missing %}a{% else %}b{% endif %}",
    "{{ loop }}", "{% else %}", "{% endfor %}", "{% include 'x' %}", "{% nope %}", "{% set 1 = 2 %}", "{{ raise_exception('stop: ' + text) }}", "{% if n %}{{ raise_exception(\"it's \\u00fc\") }}{% endif %}", "{% break %}",
    "{% for a in numbers %}{{ loop.cycle('x', 'y') }}{{ loop.changed(a) }}{% endfor %}", "{{ range(3) | list }} {{ range(1, 10, 4) | list }} {{ range(3, 0, -1) | list }}", "{% for i in range(3) %}{{ i }}{% endfor %}", "{{ dict(a=1, b=2) }}", "{{ strftime_now('%d %b %Y %H:%M %A %j %-d %p %%') }}",
    # methods
    "{{ text.split('-') }} {{ text.split('-', 1) }} {{ text.rsplit('-', 1) }} {{ ' a  b '.split() }} {{ ''.split() }} {{ ''.split('x') }} {{ 'a b c'.split(none, 1) }}", "[{{ '  a '.strip() }}] [{{ ' a '.lstrip() }}] [{{ ' a '.rstrip() }}] {{ 'xxaxx'.strip('x') }} {{ 'abc'.strip('ac') }} {{ '\\u3000a\\u00a0'.strip() }}",
    "{{ text.startswith('a-') }} {{ text.endswith(('x', 'a')) }} {{ text.startswith('') }}", "{{ text.upper() }} {{ 'ABC'.lower() }} {{ \"they're here\".title() }} {{ 'aBC dE'.capitalize() }}", "{{ text.replace('a', 'XX') }} {{ text.replace('-', '', 1) }} {{ 'ab'.replace('', '.') }}",
    "{{ ', '.join(words) }} {{ ''.join([]) }}", "{{ ', '.join(numbers) }}", "{{ text.find('c') }} {{ text.find('z') }} {{ text.rfind('a') }} {{ unicode.find('語') }} {{ text.count('a') }} {{ text.index('b') }}", "{{ 'a\\nb\\r\\nc\\n'.splitlines() }} {{ 'a\\n'.splitlines(true) }}",
    "{{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ 'abc'.removeprefix('x') }}", "{{ text.partition('-') }} {{ text.rpartition('-') }} {{ text.partition('z') }}", "{{ 'ab'.isalpha() }} {{ '12'.isdigit() }} {{ ' '.isspace() }} {{ ''.isalpha() }}", "{{ numbers.index(2) }} {{ numbers.count(3) }}", "{{ text.nosuch() }}",
    # filters
    "{{ nested | tojson }}", "{{ nested | tojson(indent=2) }}", "{{ nested | tojson(ensure_ascii=True) }} {{ unicode | tojson(true) }}", "{{ nested | tojson(separators=(',', ':')) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", "{{ [1.0, 1e20, true, none, 'a/b<>&\\''] | tojson }}", "{{ {} | tojson(indent=4) }} {{ [[], {}] | tojson(indent=1) }}", "{{ missing | tojson }}",
    "{{ '  a b ' | trim }}| {{ 'xax' | trim('x') }}", "{{ missing | default('d') }} {{ empty | default('d') }}| {{ empty | default('d', true) }} {{ nothing | d('q', boolean=true) }}", "{{ numbers | length }} {{ unicode | length }} {{ nested | count }} {{ missing | length }}", "{{ n | length }}", "{{ words | join(', ') }} {{ messages | join('/', attribute='role') }} {{ numbers | join }}",
    "{{ numbers | first }} {{ numbers | last }} {{ [] | first }}| {{ text | first }}", "{{ 'ab' | list }} {{ numbers | reverse | list }} {{ 'abc' | reverse }}", "{{ numbers | sort }} {{ words | sort }} {{ words | sort(reverse=true) }} {{ words | sort(case_sensitive=true) }} {{ messages | sort(attribute='role') | map(attribute='role') | list }}",
    "{{ numbers | unique | list }} {{ numbers | max }} {{ numbers | min }} {{ numbers | sum }} {{ [] | max }}|", "{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'eq', 'user') | map(attribute='role') | join(',') }} {{ messages | selectattr('tool_calls') | list | length }} {{ messages | selectattr('tool_calls', 'defined') | map(attribute='role') | first }}",
    "{{ numbers | select('odd') | list }} {{ numbers | reject('equalto', 3) | list }} {{ [0, 1, '', 'a'] | select | list }}", "{{ words | map('upper') | list }} {{ messages | map(attribute='nope', default='z') | list }} {{ messages | map(attribute='content.0') | first }}", "{% set g = numbers | select('odd') %}{{ g | list }}{{ g | list }}", "{{ (numbers | map('string')) | length }}",
    "{{ nested | items | first }} {{ missing | items | list }}", "{{ nested | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }}", "{{ 'a\\nb\\n\\nc' | indent }}| {{ 'a\\nb' | indent(2, true) }}", "{{ '3' | int }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ 3.9 | int }} {{ '2.5' | float }} {{ 'q' | float }} {{ n | string | length }}",
    "{{ 2.5 | round }} {{ 3.14159 | round(2) }} {{ 2.1 | round(method='ceil') }} {{ 7 | round }} {{ 2.675 | round(2) }}", "{{ '<a href=\"x\">\\'&' | escape }} {{ '<b>' | safe }} {{ '<b>' | e | e }}", "{{ 'hello wORLD-foo' | title }} {{ 'aBC' | capitalize }} {{ 'aB' | upper }} {{ 'aB' | lower }}", "{{ 'aXbX' | replace('X', 'y', 1) }}", "{{ -3 | abs }} {{ 1.5 | abs }}", "{{ n | nosuch }}",
    # tests
    "{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ nothing is none }} {{ yes is true }} {{ 1 is true }} {{ yes is boolean }} {{ n is number }} {{ yes is number }} {{ yes is integer }} {{ x is float }}", "{{ text is string }} {{ nested is mapping }} {{ numbers is iterable }} {{ n is iterable }} {{ text is sequence }} {{ nested is sequence }} {{ missing is iterable }}",
    "{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ 3 is in numbers }} {{ n is eq 7 }} {{ n is ne(7) }} {{ n is gt 3 and n is lt 9 }} {{ 'a' is lower }} {{ 'A' is upper }}", "{{ n is not none }} {{ not n is none }} {{ missing is not defined and yes }}", "{{ yes is sameas true }} {{ n is nosuch }}", "{{ nothing is none or missing }}",
    "{{ messages[1].content | trim | length > 3 }}", "{{ 'a' + 'b' | upper }}", "{{ ('a' + 'b') | upper }}", "{{ n + 1 is odd }}", "{{ messages | length - 1 }}", "{% if messages[0]['role'] == 'system' and 'x' not in messages[0] %}ok{% endif %}",
]


def render(text):
    try:
        return {"rendered": chat_template_utils._compile_jinja_template(text).render(**VARIABLES)}
    except TemplateError as error:
        raised = "raise_exception" in text
        return {"error": error.message if raised else True}
    except Exception:
        return {"error": True}


def fix_clock():
    import datetime

    class Fixed(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 18, 12, 0, 0)

    chat_template_utils.datetime = Fixed


def main():
    fix_clock()
    cases = [{"template": text, **render(text)} for text in TEMPLATES]
    rows = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    print('{"variables": %s,\n"cases": [\n%s\n]}' % (json.dumps(VARIABLES, ensure_ascii=False), rows))


if __name__ == "__main__":
    sys.exit(main())
