import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, join, posix } from 'node:path';
import { text } from 'node:stream/consumers';
import dockerignore from '@balena/dockerignore';
import {
  type Copy,
  DockerfileParser,
  type Env,
  type From,
  type Instruction,
  type JSONInstruction,
} from 'dockerfile-ast';

/** What a Dockerfile makes, as folders of this machine. */
export interface ContainerImage {
  /** The folder that commands run in. */
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  /** As in the Dockerfile: `1000:1000`. */
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
}

/** The state of a stage while its instructions are executed. */
interface Stage {
  readonly root: string;
  workdir: string;
  user: string;
  env: Record<string, string>;
  entrypoint: readonly string[];
  command: readonly string[];
  healthcheck: readonly string[];
}

export interface ImageOptions {
  readonly dockerfile: string;
  /** The folder whose files it copies. */
  readonly context: string;
  /** An empty folder. */
  readonly into: string;
}

/**
 * Does what a container engine does with a Dockerfile, without one: copies what it copies, and runs what it runs. Each stage is a folder. The
 * base image is this machine with the Node of this process. An instruction that it does not know is an error.
 */
export async function buildImage({ dockerfile, context, into }: ImageOptions): Promise<ContainerImage> {
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const instruction of DockerfileParser.parse(readFileSync(dockerfile, 'utf8')).getInstructions()) {
    if (instruction.getKeyword() === 'FROM') {
      const name = (instruction as From).getBuildStage() ?? ''; // by its keyword
      stage = newStage(mkdtempSync(join(into, 'stage-')));
      stages.set(name, stage);
    } else if (stage) await execute(instruction, stage, { stages, context });
  }
  if (!stage) throw new Error(`${dockerfile} has no stage.`);
  return { ...stage, workdir: join(stage.root, stage.workdir) };
}

function newStage(root: string): Stage {
  chmodSync(root, 0o755);
  return { root, workdir: '/', user: 'root', env: {}, entrypoint: [], command: [], healthcheck: [] };
}

interface Surroundings {
  readonly stages: ReadonlyMap<string, Stage>;
  readonly context: string;
}

async function execute(instruction: Instruction, stage: Stage, surroundings: Surroundings): Promise<void> {
  const values = instruction.getArguments().map((argument) => argument.getValue());
  switch (instruction.getKeyword()) {
    case 'WORKDIR':
      stage.workdir = posix.resolve(stage.workdir, values[0] ?? '');
      mkdirSync(join(stage.root, stage.workdir), { recursive: true });
      break;
    case 'ENV':
      for (const property of (instruction as Env).getProperties())
        stage.env[property.getName()] = property.getValue() ?? ''; // by its keyword
      break;
    case 'COPY':
      copy(instruction as Copy, stage, surroundings); // by its keyword
      break;
    case 'RUN':
      await runToItsEnd(stage, ['/bin/sh', '-c', instruction.getArgumentsContent() ?? '']);
      break;
    case 'USER':
      stage.user = values[0] ?? '';
      break;
    case 'EXPOSE':
      break;
    case 'ENTRYPOINT':
      stage.entrypoint = wordsOf(instruction as JSONInstruction); // by its keyword
      break;
    case 'CMD':
      stage.command = wordsOf(instruction as JSONInstruction); // by its keyword
      break;
    case 'HEALTHCHECK':
      // Its arguments after the flags are those of a CMD.
      stage.healthcheck = JSON.parse((instruction.getArgumentsContent() ?? '').replace(/^.*?CMD\s+/s, ''));
      break;
    default:
      throw new Error(`The tests do not know the instruction ${instruction.toString()}.`);
  }
}

function wordsOf(instruction: JSONInstruction): readonly string[] {
  const words = instruction.getJSONStrings().map((one) => one.getJSONValue());
  // Without brackets, a shell runs the command. It would not pass on the signal to stop.
  if (words.length === 0) throw new Error(`${instruction.toString()} is no list of words.`);
  return words;
}

function copy(instruction: Copy, stage: Stage, { stages, context }: Surroundings): void {
  const paths = instruction.getArguments().map((argument) => argument.getValue());
  const target = paths.pop() ?? '';
  const from = instruction.getFromFlag()?.getValue();
  const source = from ? stages.get(from) : undefined;
  if (from && !source) throw new Error(`COPY --from=${from} names no stage.`);
  const destination = join(stage.root, posix.resolve(stage.workdir, target));
  const isFolder = paths.length > 1 || target.endsWith('/') || isExistingFolder(destination);
  const isIgnored = source ? () => false : ignoredIn(context);
  for (const path of paths) {
    const origin = join(source?.root ?? context, path);
    if (isIgnored(origin)) throw new Error(`COPY ${path}: .dockerignore leaves it out.`);
    // As Docker does, it copies what is in a folder, and a file into a folder that exists.
    const place = isFolder && !isExistingFolder(origin) ? join(destination, basename(path)) : destination;
    cpSync(origin, place, { recursive: true, filter: (file) => !isIgnored(file), verbatimSymlinks: true });
  }
}

function isExistingFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function ignoredIn(context: string): (file: string) => boolean {
  const file = join(context, '.dockerignore');
  const matcher = dockerignore.default().add(existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []);
  return (found) => {
    const path = posix.relative(context, found);
    return path !== '' && matcher.ignores(path);
  };
}

/** Runs a command of RUN. The machine is the base image, so it has npm's settings and its cache. Global packages are the stage's own. */
async function runToItsEnd({ root, workdir, user, env }: Stage, words: readonly string[]): Promise<void> {
  const prefix = join(root, 'usr/local');
  const child = runIn({ workdir: join(root, workdir), user, env: { ...process.env, ...env } }, words, {
    npm_config_prefix: prefix,
    PATH: [join(prefix, 'bin'), pathOfNode()].join(delimiter),
  });
  const [said, complaints, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}:\n${said}${complaints}`);
}

const pathOfNode = () => [dirname(process.execPath), process.env.PATH].join(delimiter);

/**
 * Starts a command as a container of the image does: in its folder, as its user, with its environment, and what is added to that. If the tests do
 * not run as root, it runs as their user.
 */
export function runIn(
  { workdir, env, user }: Pick<ContainerImage, 'workdir' | 'user'> & { readonly env: NodeJS.ProcessEnv },
  [program = '', ...parameters]: readonly string[],
  added: Readonly<Record<string, string>> = {},
) {
  const [uid = Number.NaN, gid = uid] = user.split(':').map(Number);
  // A relative path would be one from the folder of this process.
  const isRelative = program.includes('/') && !program.startsWith('/');
  return spawn(isRelative ? join(workdir, program) : program, parameters, {
    cwd: workdir,
    env: { PATH: pathOfNode(), ...env, ...added },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(process.getuid?.() === 0 && Number.isInteger(uid) ? { uid, gid } : {}),
  });
}
