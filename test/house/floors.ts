import { posix } from 'node:path';

/** Where a part of `src/` stands; a file may import from its own floor and from the floors below it. */
const floors: Readonly<Record<string, number>> = {
  'errors.ts': 0,
  'access.ts': 1,
  events: 1,
  projections: 1,
  commands: 1,
  reactors: 1,
  config: 1,
  store: 2,
  runtime: 3,
  schema: 3,
  gateway: 4,
  'refold.ts': 5,
  cli: 6,
  'index.ts': 7,
  testing: 6,
  'testing.ts': 7,
};

interface ClosedDoor {
  readonly closedTo: (part: string) => boolean;
  readonly target: RegExp;
  readonly because: string;
}

// What the floors alone would let through.
const closedDoors: readonly ClosedDoor[] = [
  {
    closedTo: (part) => part === 'schema',
    target: /^(store|runtime)\//,
    because: 'schema/ declares an interface for what it needs, so that its tests need no database',
  },
  {
    closedTo: (part) => part === 'schema',
    target: /^(graphql-yoga|graphql-ws|ws|(node:)?(https?|http2|net))$/,
    because: 'schema/ knows no HTTP',
  },
  {
    closedTo: (part) => part !== 'store',
    target: /^(pg|pg-.*|kysely)(\/|$)/,
    because: 'all SQL lives in store/',
  },
];

/** `sources`: path below `src/` to text. Returns one sentence for each import that breaks the house. */
export function floorViolations(sources: ReadonlyMap<string, string>): readonly string[] {
  const imports = new Map([...sources].map(([file, text]) => [file, importedBy(file, text)]));
  return [...[...imports].flatMap(([file, targets]) => violationsOf(file, targets)), ...circles(imports)];
}

function violationsOf(file: string, targets: readonly string[]): readonly string[] {
  const part = partOf(file);
  const floor = floors[part];
  if (floor === undefined) return [`${file}: '${part}' is on no floor of the house`];
  return targets.flatMap((target) => {
    const door = closedDoors.find((closed) => closed.closedTo(part) && closed.target.test(target));
    if (door !== undefined) return [`${file} imports ${target}, but ${door.because}`];
    const targetFloor = floors[partOf(target)];
    if (!target.endsWith('.ts') || targetFloor === undefined || targetFloor <= floor) return [];
    return [`${file} (floor ${floor}) imports up: ${target} (floor ${targetFloor})`];
  });
}

function partOf(file: string): string {
  return file.split('/')[0] ?? file;
}

/** Type imports count as well: a part that needs a type from above cannot be read without what is above. */
function importedBy(file: string, text: string): readonly string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
  const patterns = [
    /^\s*(?:import|export)\s[^'"`;]*?from\s*['"]([^'"]+)['"]/gm,
    /^\s*import\s*['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
  ];
  const specifiers = patterns.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[1] ?? ''));
  return [...new Set(specifiers)].map((specifier) =>
    specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier) : specifier,
  );
}

function circles(imports: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) found.push(`circle: ${[...path.slice(start), file].join(' -> ')}`);
    if (start >= 0 || done.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return found;
}
