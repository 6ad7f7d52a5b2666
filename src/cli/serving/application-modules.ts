import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** The files of an application: what it imports, except packages. Changed files can be imported again. */
export interface ApplicationModules {
  /** A text that differs if a file was written since. */
  stamp(): string;
  /** Returns the files whose content differs from what was imported. Also files that an import did not find and that exist now. */
  changed(): readonly string[];
  /** The next import loads these files again, and all that import them. The others stay as they are, with their state. */
  renew(files: readonly string[]): void;
  /** Confirms that the imports since {@link renew} have succeeded. Otherwise the next call of it repeats them. */
  loaded(): void;
}

// Refold's own files, which are outside of node_modules in its repository.
const ownFolder = new URL('../../', import.meta.url).href;

/**
 * Follows all imports of this process from now on. Node keeps a module for each URL, so a file that is to be loaded again gets another
 * query.
 */
export function trackModules(): ApplicationModules {
  const contents = new Map<string, string | null>();
  const importers = new Map<string, Set<string>>();
  const generations = new Map<string, number>();
  let generation = 0;
  let unconfirmed = new Set<string>();

  function note(path: string, parent: string | undefined): void {
    if (!contents.has(path)) contents.set(path, contentOf(path));
    if (parent !== undefined) importers.set(path, (importers.get(path) ?? new Set()).add(parent));
  }

  registerHooks({
    resolve(specifier, context, next) {
      const parent = context.parentURL === undefined ? undefined : pathOf(context.parentURL);
      try {
        const found = next(specifier, context);
        const path = pathOf(found.url);
        if (path === undefined) return found;
        note(path, parent);
        const age = generations.get(path);
        if (age === undefined) return found;
        const url = new URL(found.url);
        url.searchParams.set('refold', String(age));
        return { ...found, url: url.href };
      } catch (error) {
        const missing = /^\.{0,2}\/|^file:/.test(specifier) && URL.parse(specifier, context.parentURL);
        const path = missing ? pathOf(missing.href) : undefined;
        if (path !== undefined) note(path, parent);
        throw error;
      }
    },
  });

  return {
    stamp: () => [...contents.keys()].map(stampOf).join(),
    changed: () => [...contents].flatMap(([path, content]) => (contentOf(path) === content ? [] : [path])),
    renew(files) {
      const stale = new Set([...unconfirmed, ...files]);
      // The set grows while it is iterated.
      for (const path of stale) for (const importer of importers.get(path) ?? []) stale.add(importer);
      generation++;
      const { cache } = createRequire(import.meta.url);
      for (const path of stale) {
        generations.set(path, generation);
        contents.delete(path);
        delete cache[path];
      }
      for (const parents of importers.values()) for (const path of stale) parents.delete(path);
      unconfirmed = stale;
    },
    loaded() {
      unconfirmed = new Set();
    },
  };
}

/** Returns the path of an application's file; undefined for packages, modules of Node and Refold itself. */
function pathOf(url: string): string | undefined {
  if (!url.startsWith('file:') || url.includes('/node_modules/') || url.startsWith(ownFolder)) return undefined;
  return fileURLToPath(url);
}

function contentOf(path: string): string | null {
  try {
    return createHash('sha1').update(readFileSync(path)).digest('base64');
  } catch {
    return null; // does not exist
  }
}

function stampOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? `${found.mtimeMs} ${found.size} ${found.ino}` : '';
}
