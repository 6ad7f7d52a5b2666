import { existsSync, statSync } from 'node:fs';
import { cp, readdir, readFile, readlink, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { PostgresBinaries, SystemAccount } from './embedded-binaries.ts';
import { isReachable, openFolder, sharedPlace } from './embedded-place.ts';

/** In milliseconds. A process that has found its copy runs a program of it within this time. */
const keptUnused = 600_000;

/**
 * The programs, or a copy of them if the server's account cannot access them. All projects of the machine share the copy of a version. Unused
 * copies of other versions are removed.
 */
export async function reachableBinaries(
  binaries: PostgresBinaries,
  account: SystemAccount,
  place = sharedPlace,
): Promise<PostgresBinaries> {
  if (isReachable(binaries.postgres, account)) return binaries;
  const folder = dirname(dirname(binaries.postgres)); // the programs find their libraries relative to themselves
  const copy = join(place, await nameOfCopy(binaries, folder));
  await removeUnused(place, copy);
  const now = new Date();
  await utimes(copy, now, now).catch(() => copyWhole(folder, copy, place));
  const inCopy = (program: string) => join(copy, program.slice(folder.length));
  const { initdb, postgres, pg_ctl } = binaries;
  return { initdb: inCopy(initdb), postgres: inCopy(postgres), pg_ctl: inCopy(pg_ctl) };
}

/** Such as `programs-linux-x64-18.4.0-12345678`: the npm package, its version, and the size of its server. */
async function nameOfCopy({ postgres }: PostgresBinaries, folder: string): Promise<string> {
  const manifest: { readonly name: string; readonly version: string } = JSON.parse(
    await readFile(join(dirname(folder), 'package.json'), 'utf8'),
  );
  return `programs-${basename(manifest.name)}-${manifest.version}-${statSync(postgres).size}`;
}

async function copyWhole(folder: string, copy: string, place: string): Promise<void> {
  const unfinished = join(await openFolder('programs.new-', place), 'programs');
  try {
    await cp(folder, unfinished, { recursive: true, verbatimSymlinks: true });
    await rename(unfinished, copy).catch((error: unknown) => {
      if (!existsSync(copy)) throw error; // else another process was first
    });
  } finally {
    await rm(dirname(unfinished), { recursive: true, force: true });
  }
}

async function removeUnused(place: string, current: string): Promise<void> {
  const names = await readdir(place).catch(() => []);
  for (const path of names.filter((name) => name.startsWith('programs')).map((name) => join(place, name))) {
    const used = await stat(path).catch(() => undefined);
    if (path === current || used === undefined || Date.now() - used.mtimeMs < keptUnused || (await isRun(path)))
      continue;
    // Renamed first: a process must not find a copy that is partly removed.
    const aside = await openFolder('programs.old-', place);
    await rename(path, join(aside, 'programs')).catch(() => {}); // else another process was first
    await rm(aside, { recursive: true, force: true });
  }
}

/** Whether a program of the folder runs; true if that is unknown. */
async function isRun(folder: string): Promise<boolean> {
  const pids = await readdir('/proc').catch(() => undefined);
  if (pids === undefined) return true;
  const programs = await Promise.all(pids.map((pid) => readlink(join('/proc', pid, 'exe')).catch(() => '')));
  return programs.some((program) => program.startsWith(`${folder}/`));
}
