import { importedBy } from './imports.ts';
import { rooms } from './rooms.ts';

/** The floor of each part of `src/`; a file may import from its own floor and the floors below. */
const floors: Readonly<Record<string, number>> = {
  'errors.ts': 0,
  'error-codes.ts': 0,
  'thrown.ts': 0,
  'package-path.ts': 0,
  'tracing.ts': 0,
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
  admin: 4,
  'logger.ts': 2,
  'refold.ts': 5,
  'open-servers.ts': 5,
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

// Exceptions that the floors alone would allow.
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

/** `sources`: path below `src/` to text. Returns one sentence for each forbidden import. */
export function floorViolations(sources: ReadonlyMap<string, string>): readonly string[] {
  const imports = new Map([...sources].map(([file, text]) => [file, importedBy(file, text)]));
  const files = [...imports];
  return [
    ...files.flatMap(([file, targets]) => violationsOf(file, targets)),
    ...files.flatMap(([file, targets]) => roomViolations(file, targets)),
    ...circles(imports),
  ];
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

/** Within one hall, a room may use the rooms that it names, and nothing that stands on top of them. */
function roomViolations(file: string, targets: readonly string[]): readonly string[] {
  const room = roomOf(file);
  if (room === undefined) return [];
  if (rooms[room] === undefined) return [`${file}: '${room}' is no room of the house`];
  const { uses } = rooms[room];
  const hall = partOf(file);
  return targets.flatMap((target) => {
    const targetRoom = roomOf(target);
    if (partOf(target) !== hall || targetRoom === room) return [];
    if (targetRoom === undefined) return [`${file} imports ${target}, which stands on top of the rooms of ${hall}/`];
    return uses.includes(targetRoom.slice(hall.length + 1))
      ? []
      : [`${file} imports ${target}, but ${room}/ may not use ${targetRoom}/`];
  });
}

function partOf(file: string): string {
  return file.split('/')[0] ?? file;
}

const halls = new Set(Object.keys(rooms).map(partOf));

/** Undefined for a file that stands on top of its hall, or whose hall has no rooms. */
export function roomOf(file: string): string | undefined {
  const [hall = '', room, ...rest] = file.split('/');
  return halls.has(hall) && rest.length > 0 ? `${hall}/${room}` : undefined;
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
