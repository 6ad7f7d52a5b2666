import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../errors.ts';
import { closest } from '../events/closest.ts';
import { type ImportProgress, importEvents } from '../runtime/import-events.ts';
import { telling } from './exit-with-error.ts';
import { integer } from './format.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { withOperation } from './open-operation.ts';

export const importCommand = defineCommand({
  meta: { name: 'import', description: 'Stream a file (plain or .gz) into the log. Run twice, nothing doubles.' },
  args: {
    name: { type: 'positional', description: "One of the application's imports", required: true },
    file: { type: 'positional', description: 'The file', required: true },
    json: { type: 'boolean', description: 'The result as JSON, without a progress bar' },
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    const config = await loadConfig(args.config);
    const definition = config.imports.find((candidate) => candidate.name === args.name);
    if (!definition) {
      const names = config.imports.map((candidate) => candidate.name);
      throw new RefoldError(
        'IMPORT_FAILED',
        names.length === 0
          ? `The application declares no imports; add them to defineConfig({ imports: [...] }).`
          : `The application has no import '${args.name}'.${closest(args.name, names)}`,
      );
    }
    const started = performance.now();
    const interrupted = new AbortController();
    const bar = args.json ? undefined : progressBar();
    try {
      const progress = await withOperation(
        config,
        ({ log }) =>
          importEvents({
            log,
            definition,
            file: args.file,
            signal: interrupted.signal,
            onProgress: (now) => bar?.show(now, started),
          }),
        () => interrupted.abort(),
      );
      bar?.stop();
      const seconds = (performance.now() - started) / 1000;
      const result = {
        lines: progress.lines,
        written: progress.written,
        skipped: progress.skipped,
        seconds,
        interrupted: interrupted.signal.aborted,
      };
      if (args.json) console.log(JSON.stringify(result));
      else
        console.log(
          `${interrupted.signal.aborted ? 'Interrupted' : 'Done'}: ${integer(result.lines)} lines, ${integer(result.written)} events written, ${integer(result.skipped)} there already, in ${seconds.toFixed(1)} s (${integer(result.written / seconds)}/s).`,
        );
      if (interrupted.signal.aborted) endBySignal();
    } finally {
      bar?.stop();
    }
  }),
});

/** As a shell expects of what Ctrl-C ended. Node's own exit would wait for a read of a pipe to return. */
function endBySignal(): void {
  process.removeAllListeners('SIGINT');
  process.kill(process.pid, 'SIGINT');
}

function progressBar() {
  const bar = new SingleBar(
    {
      format:
        '{bar} {percentage}% | {lines} lines | {written} written | {skipped} there already | {rate}/s | ETA {eta_formatted}',
      hideCursor: true,
      fps: 5,
    },
    Presets.shades_classic,
  );
  let begun = false;
  return {
    show(progress: ImportProgress, started: number) {
      const seconds = (performance.now() - started) / 1000;
      const shown = {
        lines: integer(progress.lines),
        written: integer(progress.written),
        skipped: integer(progress.skipped),
        rate: integer((progress.written + progress.skipped) / seconds),
      };
      if (!begun) bar.start(progress.bytesTotal, 0, shown);
      begun = true;
      bar.update(progress.bytesRead, shown);
    },
    stop: () => bar.stop(),
  };
}
