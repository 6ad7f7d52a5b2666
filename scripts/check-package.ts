/**
 * `npm run package:check`: packs the package, installs the tarball in an empty project as a user would, and looks
 * whether everything that package.json promises is there: exports, their types, the command, the migrations.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

interface Manifest {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly files: readonly string[];
}

const manifest: Manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json');
const compiler = resolve('node_modules/.bin/tsc');
const project = mkdtempSync(join(tmpdir(), 'refold-package-'));
const installed = join(project, 'node_modules', 'refold');

try {
  installTarball();
  checkFiles();
  checkTypes();
  runProgram();
  runCommands();
  console.log('package: installed from its tarball, complete, typed, and it runs');
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(project, { recursive: true, force: true });
}

function installTarball(): void {
  execFileSync('npm', ['pack', '--silent', '--pack-destination', project], { stdio: ['ignore', 'ignore', 'inherit'] });
  const tarball = readdirSync(project).find((file) => file.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm pack made no tarball.');
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'a-user', private: true, type: 'module' }));
  run('npm', ['install', '--silent', '--no-audit', '--no-fund', `./${tarball}`]);
}

function checkFiles(): void {
  const targets = Object.values(manifest.exports).flatMap((target) =>
    typeof target === 'string' ? [target] : Object.values(target),
  );
  const missing = [...targets, ...Object.values(manifest.bin), ...manifest.files].filter(
    (file) => !existsSync(join(installed, file)),
  );
  if (missing.length > 0) throw new Error(`package.json promises files that the package lacks: ${missing.join(', ')}`);
}

/** Only complaints about the package itself count: its dependencies' types are theirs. */
function checkTypes(): void {
  const lines = entries.map((entry, index) => {
    const specifier = entry.replace(/^\./, 'refold');
    return `import * as entry${index} from '${specifier}';\nconsole.log('${specifier}:', Object.keys(entry${index}).length, 'names');`;
  });
  writeFileSync(join(project, 'program.ts'), `${lines.join('\n')}\n`);
  const compilerOptions = { module: 'nodenext', target: 'es2024', strict: true, noEmit: true };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  const complaints = compilerOutput()
    .split('\n')
    .filter((line) => /^(program\.ts|node_modules\/refold\/|error )/.test(line));
  if (complaints.length > 0) throw new Error(`The package's types do not hold:\n${complaints.join('\n')}`);
}

function compilerOutput(): string {
  try {
    return run(compiler, ['-p', '.', '--pretty', 'false']);
  } catch (error) {
    if (error instanceof Error && 'stdout' in error) return String(error.stdout);
    throw error;
  }
}

function runProgram(): void {
  console.log(run(process.execPath, ['program.ts']).trimEnd());
}

function runCommands(): void {
  for (const command of Object.keys(manifest.bin)) run(join(project, 'node_modules', '.bin', command), ['--help']);
}

function run(program: string, programArguments: readonly string[]): string {
  return execFileSync(program, programArguments, {
    cwd: project,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
