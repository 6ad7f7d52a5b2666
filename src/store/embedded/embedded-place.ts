import { constants, existsSync, statSync } from 'node:fs';
import {
  access,
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SystemAccount } from './embedded-binaries.ts';

/**
 * Used when root runs a project in a folder that only root may enter, such as `/root`. Holds copies of the programs and the data, which the
 * server's account must access. A link in the project leads to the data.
 */
export const sharedPlace = '/var/lib/refold';

const originFile = 'origin';

/** Whether the server's account may enter all parent folders of a path. A process that is not root runs the server as itself. */
export function isReachable(path: string, { uid, gid }: SystemAccount): boolean {
  if (uid === undefined) return true;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (existsSync(folder) && !mayEnter(folder, uid, gid)) return false;
    if (folder === dirname(folder)) return true;
  }
}

function mayEnter(folder: string, uid: number, gid: number | undefined): boolean {
  const { mode, uid: owner, gid: group } = statSync(folder);
  if (owner === uid) return (mode & constants.S_IXUSR) !== 0;
  return (mode & (group === gid ? constants.S_IXGRP : constants.S_IXOTH)) !== 0;
}

/** The folder that a project's link leads to; undefined if there is no link or the folder is gone. */
export async function linkedPlace(dataDir: string): Promise<string | undefined> {
  const target = await readlink(dataDir).catch(() => undefined);
  return target !== undefined && existsSync(target) ? target : undefined;
}

/** Creates a folder for the data of a project that the server's account cannot access. */
export async function newPlace(dataDir: string): Promise<string> {
  const place = await openFolder('data-');
  await writeFile(join(place, originFile), dataDir);
  return place;
}

/** Creates the link from the project to the data. Returns false if another process was first. */
export async function linkTo(dataDir: string, data: string): Promise<boolean> {
  const link = join(dirname(data), 'link');
  await symlink(data, link);
  // A broken link belongs to data that somebody has removed.
  if (existsSync(dataDir)) return false;
  await rename(link, dataDir);
  return true;
}

/** Removes data whose project was deleted or has a new data folder. */
export async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(sharedPlace).catch(() => [])) {
    const place = join(sharedPlace, name);
    const origin = await readFile(join(place, originFile), 'utf8').catch(() => undefined);
    if (origin === undefined || existsSync(join(place, 'postgres', 'postmaster.pid'))) continue;
    const { birthtimeMs } = await lstat(place);
    const isNew = Date.now() - birthtimeMs < 600_000; // it may be under construction
    if (!isNew && (await readlink(origin).catch(() => undefined)) !== join(place, 'postgres'))
      await rm(place, { recursive: true, force: true });
  }
}

/** A new folder, which the server's account may enter. */
export async function openFolder(prefix: string, place = sharedPlace): Promise<string> {
  await mkdir(place, { recursive: true });
  const folder = await mkdtemp(join(place, prefix));
  await chmod(folder, 0o755);
  await access(folder, constants.W_OK);
  return folder;
}
