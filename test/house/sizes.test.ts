import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { expect, test } from 'vitest';
import { functionsIn } from './function-sizes.ts';

const root = join(import.meta.dirname, '../../src');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.generated.ts'))
  .map((file) => file.replaceAll(sep, '/'));
const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));

/** Compares what is too large with the exceptions. An exception must go when it no longer needs to be one, and may not grow. */
function tooLarge(sizes: Iterable<readonly [name: string, size: number]>, most: number, exceptions: Exceptions) {
  const large = new Map([...sizes].filter(([, size]) => size > most));
  return {
    grown: [...large].filter(([name, size]) => size > (exceptions[name]?.[0] ?? most)),
    needless: Object.keys(exceptions).filter((name) => !large.has(name)),
  };
}

type Exceptions = Readonly<Record<string, readonly [most: number, reason: string]>>;
const none = { grown: [], needless: [] };

const maxLines = 300;
const longFiles: Exceptions = {};

test('no file is longer than can be read at once', () => {
  const sizes = [...sources].map(([file, text]) => [file, text.trimEnd().split('\n').length] as const);
  expect(tooLarge(sizes, maxLines, longFiles)).toEqual(none);
});

const maxFiles = 16;
const largeRooms: Exceptions = {};

test('no room has more files than a reader keeps in mind', () => {
  const rooms = Map.groupBy(files, (file) => dirname(file));
  const sizes = [...rooms].map(([room, inRoom]) => [room, inRoom.length] as const);
  expect(tooLarge(sizes, maxFiles, largeRooms)).toEqual(none);
});

// A screen. Functions inside a function count for themselves.
const maxOwnLines = 60;
const longFunctions: Exceptions = {
  'gateway/create-gateway.ts createGateway': [150, 'the ordered list of the parts of the gateway'],
  'projections/declaration/define-projection.ts defineProjection': [66, 'each option with its check'],
  'runtime/runtime.ts startRuntime': [130, 'the ordered list of what a process starts'],
  'store/reactors/decide-waits.ts decideWaits': [75, 'one statement'],
  'store/tables/table-problems.ts readTableProblems': [70, 'one statement'],
};

// A closure shares variables, so it must be read as a whole. One that is longer becomes a class with named state, or two parts.
const maxWholeLines = 120;
const longClosures: Exceptions = {
  'gateway/create-gateway.ts createGateway': [210, 'the ordered list of the parts of the gateway'],
  'gateway/transports/single-connection.ts createSingleConnections': [130, 'the methods of one protocol'],
  'gateway/transports/web-socket.ts createWebSocketEndpoint': [135, 'the callbacks of one protocol'],
  'runtime/consumers/log-source.ts createLogSource': [130, 'one poll for all readers, and what they share of it'],
  'runtime/live/follower.ts createFollower': [170, 'one round, in its order'],
  'runtime/runtime.ts startRuntime': [180, 'the ordered list of what a process starts'],
  'store/inline/inline-appends.ts createInlineAppends': [210, 'one transaction, in its order'],
  'store/ownership/lease-ownership.ts createLeaseOwnership': [165, 'the life of one lease'],
  'store/postgres/notifications.ts createNotifications': [140, 'the life of one connection'],
  'store/tables/read-table.ts createTable': [150, 'one function per statement'],
};

test('a function fits on a screen', () => {
  const functions = [...sources].flatMap(([file, text]) => functionsIn(file, text));
  const own = functions.map(({ id, own }) => [id, own] as const);
  expect(tooLarge(own, maxOwnLines, longFunctions)).toEqual(none);
  const whole = functions.map(({ id, whole }) => [id, whole] as const);
  expect(tooLarge(whole, maxWholeLines, longClosures)).toEqual(none);
});

test('the size of a function leaves out the functions in it', () => {
  const source = `export function outer() {\n  const inner = () => {\n    return 1;\n  };\n  return inner;\n}\n`;
  expect(functionsIn('a.ts', source)).toEqual([
    { id: 'a.ts outer', whole: 6, own: 3 },
    { id: 'a.ts inner', whole: 3, own: 3 },
  ]);
});
