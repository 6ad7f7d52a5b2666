import { createRequire } from 'node:module';

/** Whether a package of `bench/package.json` is there; `npm run bench:install` brings it. */
export function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Imports a package that may be missing, so that the project type-checks without it; the caller says what it knows of its shape. */
export async function importPeer<Shape>(name: string): Promise<Shape> {
  return (await import(name)) as Shape;
}
