import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './install-combinations.ts';

export interface CreatedProjectsOptions {
  /** The packed package. */
  readonly tarball: string;
  /** The packed `create-refold`. */
  readonly creator: string;
  /** An empty folder. */
  readonly folder: string;
  /** Creates an empty database. */
  readonly createDatabase: (name: string) => Promise<string>;
}

const npmInstall = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--silent'];

/**
 * Creates a project of each template as `npm create refold` does, and works in it as a new user would: installs, tests, checks types,
 * generates code, starts `npm run dev`, writes, reads, subscribes, edits.
 */
export async function tryCreatedProjects({
  tarball,
  creator,
  folder,
  createDatabase,
}: CreatedProjectsOptions): Promise<void> {
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  await run('npm', [...npmInstall, `refold@file:${tarball}`, `create-refold@file:${creator}`], folder);
  const create = (name: string, template: string) =>
    run(
      join(folder, 'node_modules/.bin/create-refold'),
      [name, '--yes', '--template', template, '--no-install', '--no-git'],
      folder,
    );
  const { DATABASE_URL: _, ...environment } = process.env;

  const seconds: string[] = [];
  const timed = async <T>(step: string, work: () => Promise<T>): Promise<T> => {
    const start = performance.now();
    const result = await work();
    seconds.push(`${step} ${((performance.now() - start) / 1000).toFixed(1)} s`);
    return result;
  };
  const shop = join(folder, 'shop');
  await timed('init', () => create('shop', 'shop'));
  useTarball(shop, tarball);
  await timed('install', () => run('npm', npmInstall, shop));
  await timed('test', () => run('npm', ['test'], shop, environment));
  // Its own server, as a new user has it.
  await tryDev(shop, environment, timed);
  await run('npm', ['run', 'codegen'], shop, environment);
  await run('npm', ['run', 'typecheck'], shop, environment);
  console.log(`  a new shop: ${seconds.join(', ')}`);

  for (const template of ['empty', 'existing-postgres']) {
    const project = join(folder, template);
    await create(template, template);
    // The packages are those of the shop, or fewer.
    symlinkSync(join(shop, 'node_modules'), join(project, 'node_modules'));
    await run('npm', ['test'], project, environment);
    await run('npm', ['run', 'codegen'], project, environment);
    await run('npm', ['run', 'typecheck'], project, environment);
    writeFileSync(join(project, '.env'), `DATABASE_URL=${await createDatabase(`created_${template.slice(0, 5)}`)}\n`);
    const dev = startDev(project, environment);
    const url = await dev.url;
    const added = await ask(
      url,
      'mutation { addNote(input: { notebookId: "n", text: "Hello" }) { notebook { notes } } }',
    );
    expectText(added, '{"data":{"addNote":{"notebook":{"notes":["Hello"]}}}}');
    await dev.stop();
  }
  console.log('  created projects: shop, empty, existing-postgres');
}

/** Starts `npm run dev` in a new shop, writes, subscribes and edits. */
export async function tryDev(
  project: string,
  environment: NodeJS.ProcessEnv,
  timed: <T>(step: string, work: () => Promise<T>) => Promise<T>,
): Promise<void> {
  const dev = startDev(project, environment);
  const url = await timed('dev', () => dev.url);
  const page = await fetch(`${url}/admin/`);
  if (!page.ok) throw new Error(`The admin page answers with ${page.status}: ${await page.text()}`);
  const item = '{ cartId: "c1", name: "Mug", quantity: 2, unitPrice: "12.50" }';
  const added = await timed('first command', () =>
    ask(url, `mutation { addItem(input: ${item}) { cartSummary { itemsCount totalAmount } } }`),
  );
  expectText(added, '{"data":{"addItem":{"cartSummary":{"itemsCount":2,"totalAmount":"25.00"}}}}');
  const watching = spawn('npm', ['run', '--silent', 'watch'], {
    cwd: project,
    env: { ...environment, PORT: new URL(url).port },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true, // as below
  });
  const prints = printsOf(watching.stdout);
  try {
    await timed('first message', () => prints('{"data":{"cartSummary":{"cartId":"c1","itemsCount":2}}}'));
    await timed('an edit', async () => {
      const file = join(project, 'src/cart-summary.v2.ts');
      writeFileSync(file, readFileSync(file, 'utf8').replace('+ payload.quantity', '+ payload.quantity * 10'));
      await prints('{"data":{"cartSummary":{"cartId":"c1","itemsCount":20}}}');
    });
    await timed('a new version', async () => {
      addVersion(project);
      await dev.prints(/cart_summary@3 is new, so it is built/);
      await dev.prints(/cart_summary@3 is active/);
      // The subscription stays open, and so does the address.
      await prints('{"data":{"cartSummary":{"cartId":"c1","itemsCount":-20}}}');
      const asked = await ask(url, '{ cartSummary(cartId: "c1") { itemsCount isLarge } }');
      expectText(asked, '{"data":{"cartSummary":{"itemsCount":-20,"isLarge":true}}}');
    });
  } finally {
    if (watching.pid !== undefined) process.kill(-watching.pid);
    await dev.stop();
  }
  if (!readFileSync(join(project, 'schema.graphql'), 'utf8').includes('type CartSummary '))
    throw new Error('refold dev did not write schema.graphql.');
}

/** Copies a version, gives it another number, a column and another fold, and lists it. */
function addVersion(project: string): void {
  const change = (from: string, to: string, changes: readonly (readonly [string, string])[]) => {
    let text = readFileSync(join(project, from), 'utf8');
    for (const [before, after] of changes) {
      if (!text.includes(before)) throw new Error(`${from} lacks ${before}`);
      text = text.replaceAll(before, after);
    }
    writeFileSync(join(project, to), text);
  };
  change('src/cart-summary.v2.ts', 'src/cart-summary.v3.ts', [
    ['cartSummaryV2', 'cartSummaryV3'],
    ['version: 2', 'version: 3'],
    ['+ payload.quantity * 10', '- payload.quantity * 10'],
    ['itemsCount: t.integer().index(),', 'itemsCount: t.integer().index(),\n    isLarge: t.boolean(),'],
    ['itemsCount: (', 'isLarge: true, itemsCount: ('],
  ]);
  change('refold.config.ts', 'refold.config.ts', [
    [
      "import { cartSummaryV2 } from './src/cart-summary.v2.ts';",
      "import { cartSummaryV2 } from './src/cart-summary.v2.ts';\nimport { cartSummaryV3 } from './src/cart-summary.v3.ts';",
    ],
    ['cartSummaryV2]', 'cartSummaryV2, cartSummaryV3]'],
  ]);
}

function startDev(project: string, env: NodeJS.ProcessEnv) {
  const child = spawn('npm', ['run', '--silent', 'dev'], {
    cwd: project,
    env: { ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true, // a group of its own, which Ctrl-C in a terminal ends
  });
  // npm ends with the signal, after the program has ended.
  const ended = new Promise<string>((done) => child.once('close', (code, signal) => done(signal ?? String(code))));
  const prints = printsOf(child.stdout);
  return {
    prints,
    url: prints(/GraphQL +(http:\S+)\/graphql/).then((match) => match[1] as string), // part of the match
    async stop() {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
      const how = await ended;
      if (how !== 'SIGINT' && how !== '0') throw new Error(`npm run dev ended with ${how}.`);
    },
  };
}

/** Returns a function that waits until a text is printed. */
function printsOf(stream: NodeJS.ReadableStream) {
  let printed = '';
  let ended = false;
  const waiting = new Set<() => void>();
  const look = () => {
    for (const next of waiting) next();
  };
  stream.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    look();
  });
  stream.on('close', () => {
    ended = true;
    look();
  });
  return (wanted: RegExp | string) =>
    new Promise<readonly string[]>((found, failed) => {
      const next = () => {
        const match = typeof wanted === 'string' ? printed.includes(wanted) && [wanted] : wanted.exec(printed);
        if (match) found(match);
        else if (ended) failed(new Error(`It did not print ${wanted}, but\n${printed}`));
        if (match || ended) waiting.delete(next);
      };
      waiting.add(next);
      next();
    });
}

async function ask(url: string, query: string): Promise<string> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  return response.text();
}

function expectText(found: string, expected: string): void {
  if (found !== expected) throw new Error(`Expected ${expected}, found ${found}`);
}

/** The package is not in the registry under this version. */
function useTarball(project: string, tarball: string): void {
  const file = join(project, 'package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  manifest.dependencies.refold = `file:${tarball}`;
  writeFileSync(file, JSON.stringify(manifest));
}
