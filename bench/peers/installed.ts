import { createRequire } from 'node:module';

/** Whether a package of `bench/peers/package.json` is installed (`npm run bench:install`). */
export function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Imports a package that may be missing. The project type-checks without it; the caller names the shape that it relies on. */
export async function importPeer<Shape>(name: string): Promise<Shape> {
  return (await import(name)) as Shape;
}
