import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDatabase, type Database } from '../../src/store/postgres/database.ts';
import { type AdminUnderTest, startAdmin, tokens } from '../admin/admin-under-test.ts';
import { fillOperated, operated, operatedState } from '../admin/operated-application.ts';
import { type CliResult, runCli, startCli } from '../support/cli.ts';
import { runCliHere } from '../support/cli-here.ts';
import { account } from '../support/sample-domain.ts';
import { reactorCommands, versionCommands } from './remote-commands.ts';

let admin: AdminUnderTest;
let db: Database;

beforeAll(async () => {
  admin = await startAdmin(operated, fillOperated);
  db = createDatabase({ url: admin.database.url });
});
afterAll(async () => {
  await db.close();
  await admin.close();
});

/** Runs a command against the gateway, in a folder without an application and without a database. */
function remote(line: string, token: string = tokens.all): Promise<CliResult> {
  return runCliHere([...line.split(' '), '--remote', admin.refold.url ?? ''], { REFOLD_REMOTE_TOKEN: token });
}

async function json(line: string) {
  const { stdout, stderr } = await remote(`${line} --json`);
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

test('what operators see, they see through a gateway', async () => {
  expect((await remote('status')).stdout).toMatch(/^balance@2 +active +unowned +6 +0/m);
  expect((await json('status')).versions).toHaveLength(5);
  expect((await remote('history openings@2')).stdout).toMatch(/openings@2 +building → ready/);
  const history: { of: string }[] = await json('history balance --limit 2');
  expect(history.map(({ of }) => of.split('@')[0])).toEqual(['balance', 'balance']);
  expect((await remote('events list account/a --type Debited')).stdout).toMatch(/^ *3 .*Debited +account\/a +3/m);
  const page = await json('events list --limit 2 --payload');
  expect(page.events.map(({ position, payload }: never) => [position, payload])).toEqual([
    ['5', { amount: '5000' }],
    ['6', { amount: '1' }],
  ]);
  expect(page.earlier).toBe('4');
  expect((await json('events list --from 2 --limit 1')).events[0].position).toBe('2');
  expect((await remote('events show 1')).stdout).toMatch(/^event +Opened$/m);
  expect((await remote('events tail --limit 1')).stdout).toMatch(/^6 .*Debited/);
  expect((await remote('dead-letters list')).stdout).toMatch(/^strict@1 +2 +Debited +a +\["a"\] +1 .*too large/m);
  expect((await json('dead-letters list strict@1')).letters).toHaveLength(4);
  expect((await remote('dead-letters list strict@1 --discarded')).stdout).toBe('strict@1 has nothing discarded.\n');
  expect((await remote('reactor list')).stdout).toMatch(/^mails +idle +6/m);
  expect((await remote('reactor show mails')).stdout).toContain('No handler waits.');
  expect((await remote('reactor history mails')).stdout).toContain('declared');
  expect((await remote('snapshot list')).stdout).toBe('There are no snapshots.\n');
  expect((await remote('canary')).stdout).toBe('No version is a canary.\n');
  expect((await remote('shadow')).stdout).toBe('There are no comparisons.\n');
  expect((await remote('usage --days 7')).stdout).toContain('No client has used it.');
  const changes = await remote('changes openings@2');
  expect(changes).toMatchObject({ code: 0, stdout: expect.stringContaining('Openings.note was added.') });
});

test('rows are compared by the gateway, and a difference is a failure for scripts', async () => {
  expect(await remote('verify balance@2')).toMatchObject({
    code: 0,
    stdout: 'balance@2 equals the log at position 6: 2 rows compared.\n',
  });
  expect((await remote('diff balance@1 balance@2')).code).toBe(0);
  await admin.database.administer(`update read_models.balance_v2 set movements = 77 where account_id = 'a'`);
  expect(await remote('verify balance@2')).toMatchObject({ code: 1, stdout: expect.stringContaining('movements') });
  const diff = await remote('diff balance@1 balance@2');
  expect(diff).toMatchObject({ code: 1, stdout: expect.stringMatching(/movements differs +1/) });
  await admin.database.administer(`update read_models.balance_v2 set movements = 2 where account_id = 'a'`);
});

describe('actions', () => {
  for (const [line, right, before] of [...versionCommands, ...reactorCommands])
    test(`'${line}' is shown, needs the right ${right} and a reason, and is recorded`, async () => {
      if (before) await db.query({ text: before });
      const unchanged = await operatedState(db);
      expect(await remote(`${line} --reason forbidden`, tokens.read)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`'rea' lacks the right ${right}`),
      });
      const silent = await remote(line);
      expect(silent).toMatchObject({ code: 1, stderr: expect.stringContaining('--reason TEXT') });
      expect(silent.stdout, 'what it would do').not.toBe('');
      expect(await operatedState(db)).toEqual(unchanged);

      expect(await remote(`${line} --reason agreed`)).toMatchObject({ code: 0, stderr: '' });
      expect(await operatedState(db)).not.toEqual(unchanged);
      const { items } = (await admin.data('{ auditLog(first: 1) { items { actor reason } } }')).auditLog;
      expect(items[0]).toEqual({ actor: 'ada', reason: expect.stringContaining('agreed') });
    });

  test('a retry that repairs nothing is a failure for scripts', async () => {
    expect(await remote('dead-letters retry strict@1 --reason again')).toMatchObject({ code: 1 });
  });

  test('an action that the state does not allow names the option that overcomes it', async () => {
    const refused = await remote('retire balance@2 --reason old');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/is the version that answers.* Use --force to do it anyway\.\n$/s);
  });
});

describe('the address and the token', () => {
  const here = (line: string, env: Readonly<Record<string, string>> = {}) => runCliHere(line.split(' '), env);

  test('the token comes from the environment, from a file, or with the address that refold dev prints', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'refold-')), 'token');
    writeFileSync(file, `${tokens.read}\n`);
    const { url } = admin.refold;
    expect(await here(`status --remote ${url}/admin`, { REFOLD_REMOTE_TOKEN_FILE: file })).toMatchObject({ code: 0 });
    expect(await here(`status --remote ${url}/admin/#token=${tokens.read}`)).toMatchObject({ code: 0 });
    expect((await here(`status --remote ${url}`)).stderr).toContain('set REFOLD_REMOTE_TOKEN');
    const wrong = await here(`status --remote ${url}`, { REFOLD_REMOTE_TOKEN: 'nobody' });
    expect(wrong).toMatchObject({ code: 1, stderr: `refold: '${url}' does not accept the token.\n` });
  });

  test('what is no gateway is named, without the token', async () => {
    const token = { REFOLD_REMOTE_TOKEN: tokens.read };
    expect((await here('status --remote shop#token=secret', token)).stderr).toBe(
      "refold: --remote is the URL of a gateway, such as https://shop.example.com; found 'shop'.\n",
    );
    expect((await here('status --remote http://127.0.0.1:9', token)).stderr).toContain('does not respond');
    expect((await here(`status --remote ${admin.refold.url}/elsewhere`, token)).stderr).toContain('no admin API');
  });

  test('the file of an application is refused beside it', async () => {
    expect((await remote('status --config other.ts')).stderr).toContain("--config can't be combined with --remote");
  });
});

test('new events are followed until the process is ended, and a pipe may be closed', async () => {
  const options = { env: { REFOLD_REMOTE_TOKEN: tokens.all } };
  const tail = startCli(['events', 'tail', '--follow', '--limit', '1', '--remote', admin.refold.url ?? ''], options);
  await tail.prints(/^6 /m);
  await admin.refold.log.append({
    family: account,
    streamId: 'c',
    events: [{ type: 'Opened', payload: { owner: 'c' } }],
  });
  await tail.prints(/Opened {2}account\/c/);
  expect(tail.printed.stdout.match(/^6 /gm)).toHaveLength(1);
  await tail.end('SIGINT');
  const process = await runCli(['status', '--json', '--remote', admin.refold.url ?? ''], options);
  expect(process.code).toBe(0);
});
