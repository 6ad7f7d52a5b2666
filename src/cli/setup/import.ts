import { defineCommand } from 'citty';
import { Presets, SingleBar } from 'cli-progress';
import { RefoldError } from '../../errors.ts';
import { closest } from '../../events/closest.ts';
import { type ImportProgress, importEvents } from '../../runtime/commands/import-events.ts';
import type { OutageNote } from '../../runtime/commands/through-outages.ts';
import { expectDeployedCode } from '../../runtime/dead-letters/deployed-code.ts';
import { createDatabaseWatch } from '../../runtime/ownership/database-watch.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { duration, integer } from '../shared/format.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { withOperation } from '../shared/open-operation.ts';

export const importCommand = defineCommand({
  meta: {
    name: 'import',
    description: 'Stream a file (plain or .gz) into the log. A second run writes nothing twice.',
  },
  args: {
    name: { type: 'positional', description: "One of the application's imports", required: true },
    file: { type: 'positional', description: 'The file', required: true },
    json: { type: 'boolean', description: 'The result as JSON, without a progress bar' },
    ...configArgument,
  },
  run: withErrorReporting(async ({ args }) => {
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
        async ({ db, log }) => {
          // Their rows commit with the appended events.
          for (const projection of config.projections)
            if (projection.mode === 'inline') await expectDeployedCode(db, projection);
          const { answerTimeout: answerTimeoutMs } = config.database;
          const watch = createDatabaseWatch({ appends: db, reads: db, answerTimeoutMs, onAnswered() {} });
          return importEvents({
            db,
            log,
            unlessStalled: watch.stalled.run,
            definition,
            file: args.file,
            signal: interrupted.signal,
            onProgress: (now) => bar?.show(now),
            onOutage(note) {
              bar?.stop();
              console.error(outageText(note));
            },
          }).finally(() => watch.stop());
        },
        () => interrupted.abort(),
      );
      bar?.stop();
      const seconds = (performance.now() - started) / 1000;
      const result = {
        lines: progress.lines,
        written: progress.written,
        skipped: progress.skipped,
        seconds,
        // Of the whole import: that of the progress is the one of its last seconds.
        eventsPerSecond: progress.written === 0 ? null : progress.written / seconds,
        interrupted: interrupted.signal.aborted,
      };
      if (args.json) console.log(JSON.stringify(result));
      else console.log(resultText(result));
      if (interrupted.signal.aborted) endBySignal();
    } finally {
      bar?.stop();
    }
  }),
});

/** Ends as shells expect after Ctrl-C. Node's own exit would wait for a pending read of a pipe. */
function endBySignal(): void {
  process.removeAllListeners('SIGINT');
  process.kill(process.pid, 'SIGINT');
}

/** Such as `Done: 3 lines, 2 events written, 1 already there, in 0.1 s.` */
function resultText(result: {
  readonly lines: number;
  readonly written: number;
  readonly skipped: number;
  readonly seconds: number;
  readonly interrupted: boolean;
}): string {
  const { lines, written, skipped, seconds, interrupted } = result;
  return `${interrupted ? 'Interrupted' : 'Done'}: ${integer(lines)} lines, ${integer(written)} events written, ${integer(skipped)} already there, in ${seconds.toFixed(1)} s.`;
}

function outageText(note: OutageNote): string {
  switch (note.kind) {
    case 'waiting':
      return `refold: The import waits for the database, for ${duration(note.forSeconds)} at most. ${note.error.message}`;
    case 'going on':
      return `refold: The database is available again after ${duration(note.afterSeconds)}. The import continues.`;
  }
}

const figures = '{lines} lines | {written} written | {skipped} already there | {rate} | ETA {left}';

function progressBar() {
  let bar: SingleBar | undefined;

  function start({ bytesTotal }: ImportProgress, shown: object): SingleBar {
    // The size of a pipe is unknown.
    const format = bytesTotal === 0 ? figures : `{bar} {percentage}% | ${figures}`;
    const started = new SingleBar({ format, hideCursor: true, fps: 5 }, Presets.shades_classic);
    started.start(bytesTotal, 0, shown);
    return started;
  }

  return {
    show(progress: ImportProgress) {
      const shown = shownFigures(progress);
      bar ??= start(progress, shown);
      bar.update(progress.bytesRead, shown);
    },
    /** What is shown afterwards is shown in a new one. */
    stop() {
      bar?.stop();
      bar = undefined;
    },
  };
}

/** There is no ETA while all events are already there: their speed says nothing about the rest. */
function shownFigures({ lines, written, skipped, eventsPerSecond, secondsLeft }: ImportProgress) {
  return {
    lines: integer(lines),
    written: integer(written),
    skipped: integer(skipped),
    rate: eventsPerSecond === null ? '-' : `${integer(eventsPerSecond)}/s`,
    left: secondsLeft === null ? '-' : duration(secondsLeft),
  };
}
