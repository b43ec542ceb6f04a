# Plays the vectors on the server at REDIS_URL: perl redis_pm.pl [file ...]; needs Redis.pm.
use v5.20;
use warnings;
use File::Basename qw(dirname);
use JSON::PP;
use Redis;

# sample
use Digest::SHA qw(sha1_hex);

sub limiter {
    my ($client, $path) = @_;
    open my $file, '<:raw', $path or die "$path: $!";
    my $text = do { local $/; <$file> };
    my $sha = sha1_hex($text);

    # args: amount, period_ns, burst or mode, cost[, now_ns].
    # Returns (status, remaining, retry_after_ns, reset_after_ns).
    return sub {
        my ($key, @args) = @_;
        my @reply = eval { $client->evalsha($sha, 1, $key, @args) };
        return @reply unless $@;
        die $@ unless $@ =~ /^\[evalsha\] NOSCRIPT/;
        return $client->eval($text, 1, $key, @args);
    };
}
# end

my $vectors = dirname(__FILE__) . '/..';
my $key     = 'tatami:' . join '', map { sprintf '%04x', rand 65536 } 1 .. 4;
my %counts  = (passed => 0, failed => 0);

sub check {
    my ($name, $got, $want) = @_;
    $counts{$got eq $want ? 'passed' : 'failed'}++;
    say "$name: got $got, want $want" if $got ne $want;
}

# Returns what the first wrong step did and should have done, or the last one.
sub play {
    my ($client, $allow, $lead, $test) = @_;
    my %held = $test->{key}->%*;
    $client->set($key, pack 'H*', $held{hex}) if $held{kind} eq 'string';
    $client->rpush($key, 'a') if $held{kind} eq 'list';
    $client->pexpire($key, $held{ttl_ms}) if length $held{ttl_ms};
    my ($got, $want);
    for my $step ($test->{steps}->@*) {
        my @reply = eval { $allow->($key, @$lead, $step->{argv}->@*) };
        my $error = $@ =~ /^\[\w+\] (\w+)/ ? $1 : $@;
        my $ttl   = $client->pttl($key);
        my ($least, $most) = $step->{ttl_ms}->@*;
        my $kept  = length $least ? $least <= $ttl && $ttl <= $most : $ttl < 0;
        my $state = $client->type($key) eq 'string' ? unpack 'H*', $client->get($key) : '';
        $got  = encode_json([$error, \@reply, $state, $kept ? $step->{ttl_ms} : $ttl]);
        $want = encode_json([$step->@{qw(error reply state ttl_ms)}]);
        last if $got ne $want;
    }
    return ($got, $want);
}

sub digest {
    my ($allow, $lead, $stream) = @_;
    my $sha256 = Digest::SHA->new(256);
    my $now_ns = $stream->{now_ns};
    for (1 .. $stream->{calls}) {
        my @reply = $allow->($key, @$lead, $stream->{cost}, $now_ns);
        $sha256->add("@reply\n");
        $now_ns += $reply[2];
    }
    return $sha256->hexdigest;
}

my ($password, $server) = $ENV{REDIS_URL} =~ m{^redis://(?:[^/@]*:([^/@]*)@)?([^/]+)} or die 'REDIS_URL: redis://host:port';
my $client = Redis->new(server => $server, $password ? (password => $password) : ());
check('64 bits', $client->incrby($key, '9223372036854775807'), '9223372036854775807');
$client->del($key);
for my $path (@ARGV ? @ARGV : glob "$vectors/*_v*.json") {
    open my $file, '<:raw', $path or die "$path: $!";
    my %file  = decode_json(do { local $/; <$file> })->%*;
    my $asset = "$vectors/../lua/$file{script}.lua";
    check("$file{script} SHA1", Digest::SHA->new(1)->addfile($asset)->hexdigest, $file{sha1});
    my $allow = limiter($client, $asset);
    for my $group ($file{groups}->@*) {
        for my $test ($group->{tests}->@*) {
            check("$file{script} $test->{id}", play($client, $allow, $group->{argv}, $test));
            $client->del($key);
        }
        for my $stream ($group->{streams}->@*) {
            check("$file{script} $stream->{id}", digest($allow, $group->{argv}, $stream), $stream->{sha256});
            $client->del($key);
        }
    }
}

say "$counts{passed} passed, $counts{failed} failed";
exit($counts{failed} > 0);
