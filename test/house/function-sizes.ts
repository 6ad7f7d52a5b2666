import { parseAst } from 'vitest/node';

/** A function with its size in lines. */
export interface SizedFunction {
  /** Its file in `src/`, and its name. */
  readonly id: string;
  /** From its first line to its last. */
  readonly whole: number;
  /** Without the functions in it. */
  readonly own: number;
}

interface Found {
  readonly name: string;
  readonly whole: number;
  inner: number;
}

/** All functions of a source, those inside others included. */
export function functionsIn(file: string, source: string): readonly SizedFunction[] {
  const found: Found[] = [];
  const lines = (start: number, end: number) => source.slice(start, end).split('\n').length;
  const visit = (node: unknown, name: string, around: Found | undefined): void => {
    if (Array.isArray(node)) for (const part of node) visit(part, name, around);
    if (!isNode(node)) return;
    const named = nameOf(node) ?? name;
    let inside = around;
    if (/Function/.test(node.type) && isNode(node.body)) {
      inside = { name: named, whole: lines(node.start, node.end), inner: 0 };
      found.push(inside);
      if (around) around.inner += inside.whole;
    }
    for (const part of Object.values(node)) visit(part, named, inside);
  };
  visit(parseAst(source, { lang: 'ts' }).body, 'anonymous', undefined);
  return found.map(({ name, whole, inner }) => ({ id: `${file} ${name}`, whole, own: whole - inner }));
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly body?: unknown;
  readonly id?: unknown;
  readonly key?: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value && 'end' in value;
}

/** The name that a declaration, a variable or a member gives to the function in it. */
function nameOf({ id, key }: Node): string | undefined {
  const named = id ?? key;
  return isNode(named) && 'name' in named && typeof named.name === 'string' ? named.name : undefined;
}
