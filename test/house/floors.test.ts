import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';
import { floorViolations } from './floors.ts';
import { rooms } from './rooms.ts';

test('the sources import only from their own floor and from below, and never in a circle', () => {
  const root = join(import.meta.dirname, '../../src');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const sources = new Map(files.map((file) => [file.replaceAll(sep, '/'), readFileSync(join(root, file), 'utf8')]));
  expect(floorViolations(sources)).toEqual([]);
});

test('no room reaches itself through the rooms that it may use', () => {
  const reached = (room: string, path: readonly string[]): void => {
    expect(path, `a circle: ${[...path, room].join(' → ')}`).not.toContain(room);
    for (const used of rooms[room]?.uses ?? []) reached(`${room.split('/')[0]}/${used}`, [...path, room]);
  };
  for (const room of Object.keys(rooms)) reached(room, []);
});

test('tests are in rooms of the same names', () => {
  const halls = new Set(Object.keys(rooms).map((room) => room.split('/')[0]));
  const folders = readdirSync(join(import.meta.dirname, '..'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) =>
      relative(join(import.meta.dirname, '..'), join(parentPath, name)).replaceAll(sep, '/'),
    );
  const inHalls = folders.filter((folder) => folder.includes('/') && halls.has(folder.split('/')[0] ?? ''));
  expect(inHalls.length).toBeGreaterThan(20);
  expect(inHalls.filter((folder) => rooms[folder] === undefined)).toEqual([]);
});

describe('the check of the floors', () => {
  const violations = (sources: Record<string, string>) => floorViolations(new Map(Object.entries(sources)));

  test('lets a file import from lower floors, its own floor and packages', () => {
    const store = `import pg from 'pg';\nimport { RefoldError } from '../errors.ts';\nexport * from './sql.ts';`;
    expect(violations({ 'store/log.ts': store, 'store/sql.ts': '', 'errors.ts': '' })).toEqual([]);
  });

  test.each([
    ['an import', `import { a,\n  b } from '../runtime/worker.ts';`],
    ['a type import', `import type { Worker } from "../runtime/worker.ts";`],
    ['a re-export', `export { a } from '../runtime/worker.ts';`],
    ['an import for its effect', `import '../runtime/worker.ts';`],
    ['a dynamic import', `const { a } = await import('../runtime/worker.ts');`],
  ])('finds %s that goes up', (_, text) => {
    expect(violations({ 'store/log.ts': text, 'runtime/worker.ts': '' })).toEqual([
      'store/log.ts (floor 2) imports up: runtime/worker.ts (floor 3)',
    ]);
  });

  test('finds a circle of files, also on one floor', () => {
    const circle = {
      'events/a.ts': `import './b.ts';`,
      'events/b.ts': `import './c.ts';`,
      'events/c.ts': `import './a.ts';`,
    };
    expect(violations(circle)).toEqual(['circle: events/a.ts -> events/b.ts -> events/c.ts -> events/a.ts']);
  });

  test('keeps the schema independent of the database and of HTTP', () => {
    const text = `import { a } from '../store/log.ts';\nimport pg from 'pg';\nimport { createServer } from 'node:http';`;
    expect(violations({ 'schema/query.ts': text, 'store/log.ts': '' })).toEqual([
      'schema/query.ts imports store/log.ts, but schema/ declares an interface for what it needs, so that its tests need no database',
      'schema/query.ts imports pg, but all SQL lives in store/',
      'schema/query.ts imports node:http, but schema/ knows no HTTP',
    ]);
  });

  test('keeps SQL in the store', () => {
    expect(violations({ 'gateway/health.ts': `import { sql } from 'kysely';` })).toEqual([
      'gateway/health.ts imports kysely, but all SQL lives in store/',
    ]);
  });

  test('lets a room use only what it names', () => {
    const found = violations({
      'store/log/append.ts': `import '../tables/read-table.ts';\nimport '../postgres/database.ts';\nimport '../event-log.ts';`,
      'store/event-log.ts': `import './tables/read-table.ts';`,
      'store/tables/read-table.ts': '',
      'store/postgres/database.ts': '',
    });
    expect(found).toEqual([
      'store/log/append.ts imports store/tables/read-table.ts, but store/log/ may not use store/tables/',
      'store/log/append.ts imports store/event-log.ts, which stands on top of the rooms of store/',
    ]);
  });

  test('knows every file', () => {
    expect(violations({ 'utils/text.ts': '' })).toEqual([`utils/text.ts: 'utils' is on no floor of the house`]);
    expect(violations({ 'store/misc/text.ts': '' })).toEqual([
      `store/misc/text.ts: 'store/misc' is no room of the house`,
    ]);
  });

  test('does not treat an example in a comment as an import', () => {
    expect(
      violations({ 'events/event.ts': `/**\n * import { x } from '../cli/main.ts';\n */\n// import '../cli/main.ts'` }),
    ).toEqual([]);
  });
});
