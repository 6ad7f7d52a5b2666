/**
 * `npm run package:check`: packs the package, installs the tarball in empty projects as users would, and checks that everything that package.json
 * promises is there, whatever else is installed: exports, their types, the command, the migrations, the templates of `refold init`. `-- NAME`
 * tries one combination alone; `-- created` the templates. In CI, each of three successive days tries a third of the ways, unless `EFFORT=whole`.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/store/embedded/embedded-postgres.ts';
import { tryCreatedProjects } from './created-projects.ts';
import { combinations, combinationsOfToday, run, tryCombinations } from './install-combinations.ts';

interface Manifest {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly files: readonly string[];
}

const manifest: Manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json');
const compiler = resolve('node_modules/.bin/tsc');
const folder = mkdtempSync(join(tmpdir(), 'refold-package-'));
// As root, servers run as another user, who may enter all projects except the one that is deliberately closed.
chmodSync(folder, 0o755);
let server: EmbeddedPostgres | undefined;

try {
  const [tarball] = await Promise.all([packTarball('.'), startServer()]);
  const wanted = process.argv[2] ?? '';
  if (wanted === '' || wanted === 'created') await tryTemplates(tarball);
  if (wanted !== 'created') await tryInstalls(tarball, wanted);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function tryTemplates(tarball: string): Promise<void> {
  const creator = await packTarball('create-refold');
  const projects = join(folder, 'created');
  await tryCreatedProjects({ tarball, creator, folder: projects, createDatabase });
}

async function tryInstalls(tarball: string, wanted: string): Promise<void> {
  const inTurns = process.env.CI !== undefined && process.env.EFFORT !== 'whole';
  const tried = (inTurns ? combinationsOfToday() : combinations).filter(({ name }) => name.includes(wanted));
  const projects = await tryCombinations(tried, { tarball, folder, createDatabase });
  const [first] = projects;
  if (first === undefined) throw new Error(`No combination is named '${wanted}'.`);
  await checkFiles(tarball);
  // One project with graphql 17 and one with 16: the types must fit both. The compiler reads packages only from node_modules; Plug'n'Play has none.
  const typed = projects.slice(0, wanted ? 1 : 2).filter((project) => existsSync(join(project, 'node_modules/refold')));
  for (const project of typed) await checkTypes(project);
  if (wanted === '') await checkRefusals(first);
  const ways = projects.length === 1 ? '1 way' : `${projects.length} ways`;
  console.log(
    `package: installed from its tarball in ${ways}, complete${typed.length > 0 ? ', typed' : ''}, and it runs`,
  );
}

async function packTarball(source: string): Promise<string> {
  const before = readdirSync(folder);
  await run('npm', ['pack', '--silent', '--pack-destination', folder], source);
  const tarball = readdirSync(folder).find((file) => file.endsWith('.tgz') && !before.includes(file));
  if (tarball === undefined) throw new Error(`npm pack made no tarball of ${source}.`);
  return join(folder, tarball);
}

async function startServer(): Promise<void> {
  server = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), settings: { fsync: 'off' } });
}

async function createDatabase(name: string): Promise<string> {
  if (!server) throw new Error('The server runs before anything is tried.');
  const client = new pg.Client(server.url);
  await client.connect();
  try {
    await client.query(`create database ${name}`);
  } finally {
    await client.end();
  }
  return server.url.replace(/refold$/, name);
}

async function checkFiles(tarball: string): Promise<void> {
  await run('tar', ['-xzf', tarball], folder);
  const unpacked = join(folder, 'package'); // the folder in every npm tarball
  const targets = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  );
  const missing = [...targets, ...Object.values(manifest.bin), ...manifest.files, 'dist/admin-page/index.html'].filter(
    (file) => !existsSync(join(unpacked, file)),
  );
  if (missing.length > 0) throw new Error(`package.json promises files that the package lacks: ${missing.join(', ')}`);
}

/** Only errors in the package itself count, not errors in its dependencies' types. */
async function checkTypes(project: string): Promise<void> {
  const lines = entries.map((entry, index) => {
    const specifier = entry.replace(/^\./, 'refold');
    return `import * as entry${index} from '${specifier}';\nconsole.log('${specifier}:', Object.keys(entry${index}).length, 'names');`;
  });
  writeFileSync(join(project, 'names.ts'), `${lines.join('\n')}\n`);
  const compilerOptions = { module: 'nodenext', target: 'es2024', strict: true, noEmit: true };
  const files = ['names.ts', 'refold.config.ts'];
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const said = await run(compiler, ['-p', '.', '--pretty', 'false'], project).catch((error: Error) => error.message);
  const complaints = said
    .split('\n')
    .filter((line) => /^(names\.ts|refold\.config\.ts|node_modules\/refold\/|error )/.test(line))
    // A user's program has Node's types only if it wants them.
    .filter((line) => !line.includes("Cannot find name 'process'") && !line.includes("Cannot find name 'console'"));
  if (complaints.length > 0) throw new Error(`The package's types do not hold:\n${complaints.join('\n')}`);
  console.log((await run(process.execPath, ['names.ts'], project)).trimEnd());
}

/** Checks that an unsuitable `graphql` is refused with a clear message. */
async function checkRefusals(project: string): Promise<void> {
  const modules = join(project, 'node_modules');
  const [graphql, aside] = [join(modules, 'graphql'), join(project, 'graphql')];
  const refuses = async (situation: string, words: string) => {
    const said = await run(process.execPath, ['node_modules/refold/dist/cli/main.js', 'schema'], project).then(
      () => 'nothing',
      (error: Error) => error.message,
    );
    if (!said.includes(`\nrefold: ${words}`)) throw new Error(`${situation}, \`refold schema\` said ${said}`);
  };
  renameSync(graphql, aside);
  await refuses('Without graphql', 'The npm package graphql is missing. Refold needs one copy of graphql');
  // Its exports, for packages that import it by name, as older ones do.
  mkdirSync(graphql);
  writeFileSync(join(graphql, 'package.json'), '{ "name": "graphql", "version": "15.11.0", "main": "index.js" }');
  writeFileSync(join(graphql, 'index.js'), "exports.version = '15.11.0';");
  await refuses('Beside graphql 15', 'graphql 15.11.0 is installed. Refold needs one copy of graphql');
  rmSync(graphql, { recursive: true });
  renameSync(aside, graphql);
  const copy = join(modules, '@pothos/core/node_modules/graphql');
  cpSync(graphql, copy, { recursive: true });
  await refuses('Beside two copies', 'Several copies of graphql are installed: Refold uses ');
  rmSync(copy, { recursive: true });
}
